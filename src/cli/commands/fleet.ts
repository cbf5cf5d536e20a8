/** `fleet`: what each instance does now, what it has earned today, and why it gets no calls. */
import { setTimeout as delay } from 'node:timers/promises';
import { CapabilityList, type Instance } from '../../contracts/capability.ts';
import { CostSeries } from '../../contracts/money.ts';
import type { Session } from '../client/session.ts';
import { procedure } from '../command.ts';
import { UnreachableError } from '../errors.ts';
import { formatDuration, formatReason, formatState, formatUsd } from '../render/formats.ts';
import { type Columns, renderRows } from '../render/print.ts';
import { createLiveBlock } from '../watch/watch-run.ts';

interface FleetPicture {
  readonly instances: readonly Instance[];
  /** USD of today's calls in this project, by endpoint. */
  readonly costs: ReadonlyMap<string, number>;
  readonly hasMore: boolean;
  readonly json: string;
}

async function readFleet({ client }: Session): Promise<FleetPicture> {
  const [listed, series] = await Promise.all([
    client.get('/v1/capabilities', CapabilityList, { limit: 200 }),
    client.get('/v1/costs/series', CostSeries, { period: 'day', by: 'endpoint' }),
  ]);
  const sums = series.value.series.map(({ name, points }): [string, number] => [
    name,
    points.reduce((sum, [, usd]) => sum + usd, 0),
  ]);
  return {
    instances: listed.value.items.flatMap(({ instances }) => instances),
    costs: new Map(sums),
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

function fleetTable(costs: FleetPicture['costs']): Columns<Instance> {
  return [
    ['CAPABILITY', ({ name, version }) => `${name}@${version}`],
    ['STATE', ({ state }, { style }) => formatState(state, style)],
    ['BUSY', drawLoad],
    ['QUEUE', 'queue_depth', 'right'],
    ['SPEED', ({ duration_ms: ms }) => (ms === null ? '' : formatDuration(ms)), 'right'],
    ['SUCCEEDED', ({ success_rate }) => `${Math.round(success_rate * 100)} %`, 'right'],
    ['TODAY', ({ endpoint }) => formatUsd(costs.get(endpoint) ?? 0), 'right'],
    ['ENDPOINT', 'endpoint', 'shrinks'],
    ['REASON', formatReason, 'shrinks'],
  ];
}

function describeSum({ instances, costs, hasMore }: FleetPicture): string {
  const busy = instances.filter(({ in_flight }) => in_flight > 0).length;
  const up = instances.filter(({ state }) => state === 'up').length;
  const usd = [...costs.values()].reduce((sum, one) => sum + one, 0);
  const more = hasMore ? '; more than 200 capabilities' : '';
  return `${instances.length} instances, ${up} up, ${busy} busy; ${formatUsd(usd)} today${more}`;
}

const frameMs = 1_000;

/** Ends with Ctrl-C. Without contact, the last picture stays and says so. */
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
        lines = [describeSum(fleet), '', ...renderRows(fleetTable(fleet.costs), fleet.instances, layout)];
      block.show(fleet === null ? [...lines, print.style.yellow('contact lost, trying again')] : lines);
      await delay(frameMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  } finally {
    release();
  }
}

export const registerFleetCommand = procedure('fleet', {
  about: 'show what each instance does, what it cost today, and why it gets no calls',
  example: 'capstan fleet --watch',
  options: { '-w, --watch': 'draw it again every second, until Ctrl-C' },
  run: async (session, { watch }) => {
    const { print, json, shell } = session;
    if (watch === true && shell.stdout.isTTY === true && !json) return watchFleet(session);
    const fleet = await readFleet(session);
    if (json) return print.json(fleet.json);
    print.table(fleetTable(fleet.costs), fleet.instances);
    print.remark(describeSum(fleet));
  },
});
