/**
 * `fleet`: what each instance does now, what it has earned today, and why it gets no calls; `fleet drain`, `undrain` and
 * `warm` change how the router treats an instance, `share` and `unshare` whom it serves.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  CapabilityDetail,
  CapabilityList,
  Instance,
  InstanceList,
  type SharedWith,
} from '@capstan/core/contracts/capability';
import { CostSeries } from '@capstan/core/contracts/money';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { describeDrain } from '@capstan/core/fleet/instance-states';
import { type ApiAnswer, jsonBody, path } from '../../client/api-client.ts';
import type { Session } from '../../client/session.ts';
import { parsed, procedure, required } from '../../command.ts';
import { exitCodes, UnreachableError, UsageError } from '../../errors.ts';
import { collectText } from '../../input/arguments.ts';
import { readFuture } from '../../input/run-filter.ts';
import { formatDuration, formatPrice, formatReason, formatState, formatUsd } from '../../render/formats.ts';
import { type Columns, cutText, renderRows } from '../../render/print.ts';
import { createLiveBlock } from '../../watch/watch-run.ts';

interface FleetPicture {
  readonly instances: readonly Instance[];
  /** USD of today's calls in this project, by instance. */
  readonly costs: ReadonlyMap<string, number>;
  readonly todayUsd: number;
  readonly hasMore: boolean;
  readonly json: string;
}

/** What an instance is: an address may serve other capabilities, and have served others before. */
function toInstanceName(capability: string, endpoint: string): string {
  return `${capability} ${endpoint}`;
}

async function readFleet({ client }: Session): Promise<FleetPicture> {
  const [listed, series] = await Promise.all([
    client.get('/v1/capabilities', CapabilityList, { limit: 200 }),
    client.get('/v1/costs/series', CostSeries, { period: 'day', by: 'endpoint', and: 'capability' }),
  ]);
  const costs = new Map<string, number>();
  for (const { name, and = '', usd } of series.value.series) costs.set(toInstanceName(and, name), usd);
  return {
    instances: listed.value.items.flatMap(({ instances }) => instances),
    costs,
    todayUsd: series.value.usd,
    hasMore: listed.value.next_cursor !== null,
    json: JSON.stringify({ capabilities: listed.value.items, costs_today: series.value.series }),
  };
}

/** `▮▮▯▯ 2/4`: its calls in flight, of those that it takes at once. */
function drawLoad({ in_flight, max_concurrency }: Instance): string {
  const width = Math.min(max_concurrency, 8);
  const full = Math.min(width, Math.ceil((in_flight / max_concurrency) * width));
  return `${'▮'.repeat(full)}${'▯'.repeat(width - full)} ${in_flight}/${max_concurrency}`;
}

function describeShares({ owner_project, shared_with }: Instance): string {
  if (shared_with.length === 0) return owner_project;
  return `${owner_project}, shared with ${shared_with === 'all' ? 'all' : shared_with.join(', ')}`;
}

/** Whom instances belong to is shown where they differ in that. */
function ownerColumn(instances: readonly Instance[]): Columns<Instance> {
  const isPlain = new Set(instances.map(describeShares)).size <= 1 && instances[0]?.shared_with.length === 0;
  return isPlain || instances.length === 0 ? [] : [['PROJECT', describeShares, 'shrinks']];
}

const mostKeys = 3;
const mostOfKey = 16;

/** `sdxl flux +3 more` */
function formatKeys({ resident = [] }: Instance): string {
  const shown = resident.slice(0, mostKeys).map((key) => cutText(key, mostOfKey));
  const rest = resident.length - shown.length;
  return [...shown, ...(rest === 0 ? [] : [`+${rest} more`])].join(' ');
}

/** Where calls need something loaded. */
function loadedColumn(instances: readonly Instance[]): Columns<Instance> {
  const isKeyed = instances.some(({ affinity }) => affinity !== undefined);
  return isKeyed ? [['LOADED', formatKeys, 'shrinks']] : [];
}

function fleetTable({ costs, instances }: Pick<FleetPicture, 'costs' | 'instances'>): Columns<Instance> {
  return [
    ['CAPABILITY', ({ name, version }) => `${name}@${version}`],
    ['STATE', ({ state }, { style }) => formatState(state, style)],
    ['BUSY', drawLoad],
    ['PRICE', ({ cost_model }) => formatPrice(cost_model), 'right'],
    ['QUEUE', 'queue_depth', 'right'],
    ['SPEED', ({ duration_ms: ms }) => (ms === null ? '' : formatDuration(ms)), 'right'],
    ['SUCCEEDED', formatSuccess, 'right'],
    ['TODAY', ({ name, endpoint }) => formatUsd(costs.get(toInstanceName(name, endpoint)) ?? 0), 'right'],
    ['TAGS', ({ tags }) => tags.join(' '), 'shrinks'],
    ['ENDPOINT', 'endpoint', 'shrinks'],
    ...loadedColumn(instances),
    ['HOST', ({ host }) => host?.name ?? '', 'shrinks'],
    ...ownerColumn(instances),
    ['REASON', formatReason, 'shrinks'],
  ];
}

/** Of its recent calls; empty before the first one. */
function formatSuccess({ recent_calls: { succeeded, failed } }: Instance): string {
  const all = succeeded + failed;
  return all === 0 ? '' : `${Math.round((succeeded / all) * 100)} %`;
}

function describeSum({ instances, todayUsd, hasMore }: FleetPicture): string {
  const busy = instances.filter(({ in_flight }) => in_flight > 0).length;
  const up = instances.filter(({ state }) => state === 'up').length;
  const more = hasMore ? '; more than 200 capabilities' : '';
  return `${instances.length} instances, ${up} up, ${busy} busy; ${formatUsd(todayUsd)} today${more}`;
}

const frameMs = 1_000;

/** Ends with Ctrl-C. Without contact, the last picture stays, with a note. */
async function watchFleet(session: Session): Promise<void> {
  const { print, shell } = session;
  const block = createLiveBlock(shell.stdout);
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  let lines: readonly string[] = [];
  try {
    while (!stop.signal.aborted) {
      const fleet = await readFleet(session).catch((thrown: unknown) => {
        if (thrown instanceof UnreachableError) return null;
        throw thrown;
      });
      const layout = { style: print.style, width: shell.stdout.columns || 80, now: shell.now() };
      if (fleet !== null)
        lines = [describeSum(fleet), '', ...renderRows(fleetTable(fleet), fleet.instances, layout)];
      block.show(fleet === null ? [...lines, print.style.yellow('contact lost, trying again')] : lines);
      await delay(frameMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  } finally {
    release();
  }
}

// Drains and warm-ups.

type FleetPlace = Pick<Instance, 'name' | 'endpoint'>;

interface ChosenInstances {
  readonly instance: string;
  readonly capability?: string | undefined;
}

/**
 * The instances that the argument means: all at an endpoint, or the only one of a capability. With `--capability` they
 * need not be listed: an instance that has deregistered keeps its drain.
 */
async function findInstances(
  { client }: Session,
  { instance: given, capability }: ChosenInstances,
): Promise<readonly FleetPlace[]> {
  if (capability !== undefined) return [{ name: capability, endpoint: given }];
  const wanted = withoutEndSlashes(given);
  const { value } = await client.get('/v1/capabilities', CapabilityList, { limit: 200 });
  const all = value.items.flatMap(({ instances }) => instances);
  const found = all.filter(({ name, endpoint }) => name === wanted || endpoint === wanted);
  if (found.length === 0) {
    throw new UsageError(`${given} is no endpoint and no capability of \`capstan fleet\``);
  }
  if (found.length > 1 && found.some(({ endpoint }) => endpoint !== wanted)) {
    const endpoints = found.map(({ endpoint }) => endpoint).join(', ');
    throw new UsageError(`${given} has ${found.length} instances; give the endpoint of one: ${endpoints}`);
  }
  return found;
}

interface FleetAct {
  readonly act: 'drain' | 'undrain' | 'warm';
  readonly chosen: ChosenInstances;
  readonly body?: object;
}

/** @returns the instances as they are afterwards */
async function changeInstances(session: Session, { act, chosen, body = {} }: FleetAct): Promise<Instance[]> {
  const { client, print, json } = session;
  const changed: Instance[] = [];
  for (const { name, endpoint } of await findInstances(session, chosen)) {
    const answer: ApiAnswer<Instance> = await client.post(
      `/v1/capabilities/${name}/${act}`,
      Instance,
      jsonBody({ endpoint, ...body }),
    );
    changed.push(answer.value);
    if (json) print.json(answer.text);
    else print.line(describeChange(answer.value, session));
  }
  return changed;
}

function describeChange({ name, endpoint, state, in_flight, drain }: Instance, { print }: Session): string {
  const calls = `${in_flight} ${in_flight === 1 ? 'call' : 'calls'} open`;
  const why = drain === undefined ? '' : `, ${describeDrain(drain)}`;
  return `${formatState(state, print.style)}  ${name} ${endpoint}, ${calls}${why}`;
}

async function countOpen({ client }: Session, places: readonly FleetPlace[]): Promise<number> {
  const counts = places.map(async ({ name, endpoint }) => {
    const { value } = await client.get(`/v1/capabilities/${name}`, CapabilityDetail);
    return value.instances.find((one) => one.endpoint === endpoint)?.in_flight ?? 0;
  });
  return (await Promise.all(counts)).reduce((sum, one) => sum + one, 0);
}

/** Waits until no call is open. Ctrl-C ends only the waiting. */
export async function waitUntilIdle({ print, shell }: Session, count: () => Promise<number>): Promise<void> {
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  try {
    while (!stop.signal.aborted) {
      if ((await count()) === 0) return print.remark('no call is open');
      await delay(frameMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  } finally {
    release();
  }
  print.remark('calls are still open; the drain continues');
  shell.exitWith(exitCodes.interrupted);
}

const instanceArgument = { '<instance>': 'its endpoint, or a capability that has one instance' } as const;
const capabilityOption = {
  '--capability <name>': 'only this capability at the endpoint, also when it is not listed',
} as const;

const drainCommand = procedure('drain', {
  about: 'send an instance no new calls; open ones continue, and a restart does not end the drain',
  example: 'capstan fleet drain http://10.0.0.7:8100 --reason "new driver" --wait',
  args: instanceArgument,
  options: {
    '-r, --reason <text>': 'why; all see it in the fleet',
    '--until <time>': parsed('when the drain ends: 2h (from now), a day or a moment', readFuture),
    '--wait': 'wait until no call is open there',
    ...capabilityOption,
  },
  run: async (session, { reason, until, wait, ...chosen }) => {
    const drained = await changeInstances(session, { act: 'drain', chosen, body: { reason, until } });
    if (wait === true) await waitUntilIdle(session, () => countOpen(session, drained));
  },
});

const undrainCommand = procedure('undrain', {
  about: 'end the drain of an instance',
  example: 'capstan fleet undrain http://10.0.0.7:8100',
  args: instanceArgument,
  options: capabilityOption,
  run: async (session, chosen) => void (await changeInstances(session, { act: 'undrain', chosen })),
});

const warmCommand = procedure('warm', {
  about: 'send an instance the warm-up call that it registered',
  example: 'capstan fleet warm http://10.0.0.7:8100',
  args: instanceArgument,
  options: capabilityOption,
  run: async (session, chosen) => void (await changeInstances(session, { act: 'warm', chosen })),
});

// Sharing.

/** The capability and, if an endpoint is given, the endpoint of each instance that is meant. */
async function findShared(
  session: Session,
  { instance, capability }: ChosenInstances,
): Promise<readonly { readonly name: string; readonly endpoint?: string }[]> {
  const isEndpoint = instance.includes('://');
  return isEndpoint ? findInstances(session, { instance, capability }) : [{ name: instance }];
}

async function setSharing(session: Session, chosen: ChosenInstances, shared_with: SharedWith): Promise<void> {
  const { client, print, json } = session;
  for (const { name, endpoint } of await findShared(session, chosen)) {
    const body = jsonBody({ shared_with, endpoint });
    const answer = await client.put(path`/v1/capabilities/${name}/sharing`, InstanceList, body);
    if (json) print.json(answer.text);
    else
      for (const one of answer.value.items) print.line(`${one.name} ${one.endpoint}: ${describeShares(one)}`);
  }
}

const sharedArgument = {
  '<instance>': 'an endpoint, or a capability: all instances that you have of it now',
} as const;

const shareCommand = procedure('share', {
  about: 'let an instance serve other projects too; their calls are charged to them',
  example: 'capstan fleet share transcribe --with all',
  args: sharedArgument,
  options: {
    '--with <project>': required(
      parsed('a project (repeatable), or `all`; replaces those that it is shared with', collectText),
    ),
    ...capabilityOption,
  },
  run: (session, { with: projects, ...chosen }) =>
    setSharing(session, chosen, projects.includes('all') ? 'all' : [...projects]),
});

const unshareCommand = procedure('unshare', {
  about: 'let an instance serve its own project alone',
  example: 'capstan fleet unshare transcribe',
  args: sharedArgument,
  options: capabilityOption,
  run: (session, chosen) => setSharing(session, chosen, []),
});

export const registerFleetCommand = procedure('fleet', {
  about: 'show what each instance does, what it cost today, and why it gets no calls',
  example: 'capstan fleet --watch',
  inner: [drainCommand, undrainCommand, warmCommand, shareCommand, unshareCommand],
  options: { '-w, --watch': 'draw it again every second, until Ctrl-C' },
  run: async (session, { watch }) => {
    const { print, json, shell } = session;
    if (watch === true && shell.stdout.isTTY === true && !json) return watchFleet(session);
    const fleet = await readFleet(session);
    if (json) return print.json(fleet.json);
    print.table(fleetTable(fleet), fleet.instances);
    print.remark(describeSum(fleet));
  },
});
