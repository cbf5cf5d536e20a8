import type { Command } from 'commander';
import { ExecAnswer } from '../../contracts/decision.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { addRouteOptions, type RouteOptions, readInput, toRouteFields } from '../input/route-request.ts';
import { renderMoney } from '../render/decision.ts';
import type { Shell } from '../shell.ts';

interface ExecOptions extends CommonOptions, RouteOptions {
  readonly idempotencyKey?: string;
}

const defaultTimeoutMs = 300_000;
/** For finding an instance, and for the answer to arrive. */
const graceMs = 30_000;

async function exec(capability: string, options: ExecOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const input = await readInput(options.input ?? '{}', shell);
  const body = {
    ...jsonBody({ input, ...toRouteFields(options) }, options.idempotencyKey),
    timeoutMs: (options.timeout ?? defaultTimeoutMs) + graceMs,
  };
  const path = `/v1/capabilities/${encodeURIComponent(capability)}/exec`;
  const { value, text } = await client.post(path, ExecAnswer, body);
  if (json) return print.json(text);
  print.json(JSON.stringify(value.output, null, 2));
  const { reason, decision_id } = value.routing;
  print.remark(`${reason}; ${renderMoney(value.routing)}; capstan route explain ${decision_id}`);
}

const example = `
The output goes to stdout. Ctrl-C cancels the call, unless it has an idempotency key.

Example:
  capstan exec thumbnail --input @input.json --budget 0.05`;

export function registerExecCommand(program: Command, shell: Shell): void {
  const command = program
    .command('exec')
    .description('call a capability on the best instance, without a pipeline')
    .argument('<capability>', 'its name');
  addRouteOptions(command)
    .option(
      '--idempotency-key <key>',
      'the same key makes the call once, and is answered the same for 24 hours',
    )
    .addHelpText('after', example)
    .action((capability: string, options: ExecOptions) => exec(capability, options, shell));
  addCommonOptions(command);
}
