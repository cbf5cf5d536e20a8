import type { Command } from 'commander';
import { Decision, DecisionDetail } from '../../contracts/decision.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { addRouteOptions, type RouteOptions, readInput, toRouteFields } from '../input/route-request.ts';
import { renderDecision, renderMoney } from '../render/decision.ts';
import type { Shell } from '../shell.ts';

type AskOptions = CommonOptions & RouteOptions;

async function ask(capability: string, options: AskOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const input = options.input === undefined ? undefined : await readInput(options.input, shell);
  const body = jsonBody({ capability, input, ...toRouteFields(options) });
  const { value, text } = await client.post('/v1/route', Decision, body);
  if (json) return print.json(text);
  print.lines([value.chosen ?? 'nobody', ...renderDecision(value, print)]);
}

function describeReplay({ chosen, replay }: DecisionDetail): string {
  if (replay.same) return 'made again from what was known then: the same';
  if (replay.chosen === null) return 'cannot be made again: what was known then was not kept';
  return `made again from what was known then: ${replay.chosen}, not ${chosen}`;
}

async function explain(decisionId: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const path = `/v1/decisions/${encodeURIComponent(decisionId)}`;
  const { value, text } = await client.get(path, DecisionDetail);
  if (json) return print.json(text);
  const step = value.run_id === null ? [] : [`run ${value.run_id}`, `step ${value.step_id}`];
  print.lines([
    [value.capability, value.chosen ?? 'nobody', ...step, value.at].join('  '),
    ...renderDecision(value, print),
    renderMoney(value),
    describeReplay(value),
  ]);
}

export function registerRouteCommand(program: Command, shell: Shell): void {
  const route = program
    .command('route')
    .description('show which instance a call would be given now, or why one went where it went')
    .enablePositionalOptions()
    .argument('<capability>', 'its name')
    .addHelpText('after', '\nExample:\n  capstan route thumbnail --priority interactive')
    .action((capability: string, options: AskOptions) => ask(capability, options, shell));
  addCommonOptions(addRouteOptions(route));
  const explained = route
    .command('explain')
    .description('show a stored decision, and whether it would be made again from what was known then')
    .argument('<decision-id>', 'as exec, `show --step` and every problem of a call show it')
    .addHelpText('after', '\nExample:\n  capstan route explain DECISION_ID')
    .action((decisionId: string, options: CommonOptions) => explain(decisionId, options, shell));
  addCommonOptions(explained);
}
