import { type Command, Option } from 'commander';
import {
  CapabilityDetail,
  CapabilityList,
  type CapabilitySpec,
  type CostModel,
  type Instance,
  InstanceState,
} from '../../contracts/capability.ts';
import type { Json } from '../../contracts/primitives.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { formatDuration, formatUsd } from '../render/amounts.ts';
import type { Printer } from '../render/print.ts';
import { formatState } from '../render/states.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';
import { indentJson } from '../watch/outcome.ts';

interface CapabilitiesOptions extends CommonOptions {
  readonly state?: string;
  readonly tag?: string;
}

const columns: readonly Column[] = [
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
  else print.table(columns, rows);
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
