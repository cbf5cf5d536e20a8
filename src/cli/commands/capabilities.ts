/**
 * What is registered, and calls without a pipeline: `capabilities`, their `publishers`, `exec`, and `route`, which
 * says where a call would go or why one went where it went.
 */
import { type Command, Option } from 'commander';
import {
  CapabilityDetail,
  CapabilityList,
  type CapabilitySpec,
  type CostModel,
  type Instance,
  InstanceState,
  Publisher,
  PublisherList,
} from '../../contracts/capability.ts';
import { Decision, DecisionDetail, ExecAnswer } from '../../contracts/decision.ts';
import type { Json } from '../../contracts/primitives.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { addRouteOptions, type RouteOptions, readInput, toRouteFields } from '../input/arguments.ts';
import { formatDuration, formatState, formatUsd } from '../render/formats.ts';
import type { Column, Printer } from '../render/print.ts';
import { renderDecision, renderMoney } from '../render/routing.ts';
import type { Shell } from '../shell.ts';
import { indentJson } from '../watch/run-table.ts';

interface CapabilitiesOptions extends CommonOptions {
  readonly state?: string;
  readonly tag?: string;
}

const instanceColumns: readonly Column[] = [
  { header: 'CAPABILITY' },
  { header: 'VERSION' },
  { header: 'STATE' },
  { header: 'PRICE', align: 'right' },
  { header: 'IN FLIGHT', align: 'right' },
  { header: 'QUEUE', align: 'right' },
  { header: 'SPEED', align: 'right' },
  { header: 'ENDPOINT', shrinks: true },
  { header: 'REASON', shrinks: true },
];

function formatPrice({ type, rate_usd }: CostModel): string {
  if (type === 'free') return 'free';
  return `${formatUsd(rate_usd)}/${type === 'per_second' ? 's' : 'call'}`;
}

/** Why calls do not go there, or only one to see. */
function formatReason({ reason, breaker: { state, until } }: Instance): string {
  const texts = reason === undefined ? [] : [reason];
  if (state === 'open') texts.push(`breaker open until ${until}`);
  if (state === 'half_open') texts.push('breaker half-open');
  return texts.join('; ');
}

function renderInstance(instance: Instance, print: Printer): string[] {
  return [
    instance.name,
    instance.version,
    formatState(instance.state, print.style),
    formatPrice(instance.cost_model),
    `${instance.in_flight}/${instance.max_concurrency}`,
    instance.queue_depth === null ? '' : String(instance.queue_depth),
    instance.duration_ms === null ? '' : formatDuration(instance.duration_ms),
    instance.endpoint,
    formatReason(instance),
  ];
}

function showInstances(instances: readonly Instance[], print: Printer): void {
  const rows = instances.map((instance) => renderInstance(instance, print));
  if (rows.length === 0) print.remark('no instances');
  else print.table(instanceColumns, rows);
}

async function listAll({ client, print, json }: Session, options: CapabilitiesOptions): Promise<void> {
  const { state, tag } = options;
  const { value, text } = await client.get('/v1/capabilities', CapabilityList, { state, tag, limit: 200 });
  if (json) return print.json(text);
  showInstances(
    value.items.flatMap(({ instances }) => instances),
    print,
  );
  if (value.next_cursor !== null) print.remark('the first 200 capabilities; there are more');
}

function renderSpec(spec: CapabilitySpec, { style }: Printer): string[] {
  return [
    `${style.bold(`${spec.name}@${spec.version}`)}  ${spec.description}`,
    style.bold('input'),
    ...indentJson(spec.input as Json),
    style.bold('output'),
    ...indentJson(spec.output as Json),
  ];
}

async function showOne({ client, print, json }: Session, name: string): Promise<void> {
  const path = `/v1/capabilities/${encodeURIComponent(name)}`;
  const { value, text } = await client.get(path, CapabilityDetail);
  if (json) return print.json(text);
  for (const { spec } of value.specs) print.lines([...renderSpec(spec, print), '']);
  showInstances(value.instances, print);
}

async function capabilities(
  name: string | undefined,
  options: CapabilitiesOptions,
  shell: Shell,
): Promise<void> {
  const session = await openSession(options, shell);
  return name === undefined ? listAll(session, options) : showOne(session, name);
}

export function registerCapabilitiesCommand(program: Command, shell: Shell): void {
  const command = program
    .command('capabilities')
    .description('list registered instances with their price and load, or show one capability')
    .argument('[name]', 'show its schemas and instances')
    .addOption(
      new Option('-s, --state <state>', 'only instances in this state').choices(InstanceState.options),
    )
    .option('-t, --tag <tag>', 'only instances with this tag')
    .addHelpText('after', '\nExample:\n  capstan capabilities thumbnail')
    .action((name: string | undefined, options: CapabilitiesOptions) => capabilities(name, options, shell));
  addCommonOptions(command);
}

const publisherColumns: readonly Column[] = [{ header: 'NAME', shrinks: true }, { header: 'PROJECTS' }];

function printPublishers(publishers: readonly Publisher[], print: Printer): void {
  const rows = publishers.map(({ name, projects }) => [name, projects.join(', ')]);
  print.table(publisherColumns, rows);
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const items: Publisher[] = [];
  let cursor: string | undefined;
  do {
    const { value } = await client.get('/v1/publishers', PublisherList, { limit: 200, cursor });
    items.push(...value.items);
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  if (json) return print.json(JSON.stringify({ items, next_cursor: null }));
  if (items.length === 0) return print.remark('no publishers');
  printPublishers(items, print);
}

async function publish(
  { name, projects }: Pick<Publisher, 'name' | 'projects'>,
  options: CommonOptions,
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const path = `/v1/publishers/${encodeURIComponent(name)}`;
  const { value, text } = await client.put(path, Publisher, jsonBody({ projects }));
  if (json) return print.json(text);
  printPublishers([value], print);
}

export function registerPublishersCommand(program: Command, shell: Shell): void {
  const publishers = program
    .command('publishers')
    .description(
      'show and set who may register instances under a name (needs a key with the scope operator)',
    );
  const listed = publishers
    .command('ls', { isDefault: true })
    .description('list the names, and the projects that have them')
    .addHelpText('after', '\nExample:\n  capstan publishers ls')
    .action((options: CommonOptions) => list(options, shell));
  addCommonOptions(listed);
  const set = publishers
    .command('set')
    .description('give a name to these projects alone; what others have registered under it is deregistered')
    .argument('<name>', 'of a capability')
    .argument('<project...>', 'ids of the projects')
    .addHelpText('after', '\nExample:\n  capstan publishers set concat prj_01')
    .action((name: string, projects: string[], options: CommonOptions) =>
      publish({ name, projects }, options, shell),
    );
  addCommonOptions(set);
}

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
