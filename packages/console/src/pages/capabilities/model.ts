/** The fleet as a table: the instances and calls of each capability, those with problems first. */
import type { CallsSummary, CapabilitySummary, Instance } from '@capstan/core/contracts/capability';
import type { Host } from '@capstan/core/contracts/host-list';
import { describeDrain } from '@capstan/core/fleet/instance-states';
import { describePrice } from '../../fleet/instance-model.ts';
import { callsOfCapability, type InstanceHealth, shownResults } from '../../health/health-model.ts';

type FleetCalls = CallsSummary['items'][number];

export interface FleetRow {
  readonly name: string;
  readonly description: string | null;
  readonly up: number;
  readonly instances: number;
  readonly inUse: number;
  readonly slots: number;
  /** Null during loading. */
  readonly calls: Omit<FleetCalls, 'name'> | null;
  /** The last calls of all its instances, newest first. */
  readonly last: InstanceHealth['last'];
  readonly price: string;
  /** Its problems, worst first; empty when there are none. */
  readonly trouble: string;
}

const noCalls: Omit<FleetCalls, 'name'> = {
  calls: 0,
  succeeded: 0,
  p50_ms: null,
  p95_ms: null,
  last_error: null,
};

function isUp({ state, breaker }: Instance): boolean {
  return (state === 'up' || state === 'warming') && breaker.state !== 'open';
}

/** `free`, `0.002 USD a call`, or the first and the number of further prices. */
function priceOf(instances: readonly Instance[]): string {
  const [first = '–', ...others] = [
    ...new Set(
      instances.toSorted((a, b) => a.cost_model.rate_usd - b.cost_model.rate_usd).map(describePrice),
    ),
  ];
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}

const trouble = {
  none: 'no instance takes calls',
  failing: 'most calls fail',
  some: 'an instance takes no calls',
  full: 'all slots are in use',
} as const;
const order: readonly string[] = [...Object.values(trouble), ''];

function troubleOf(row: Omit<FleetRow, 'trouble' | 'price' | 'name' | 'description' | 'last'>): string {
  const { up, instances, inUse, slots, calls } = row;
  if (up === 0) return trouble.none;
  if (calls !== null && calls.calls > 0 && calls.succeeded * 2 < calls.calls) return trouble.failing;
  if (up < instances) return trouble.some;
  return inUse >= slots ? trouble.full : '';
}

function failedOf({ calls }: FleetRow): number {
  return calls === null ? 0 : calls.calls - calls.succeeded;
}

/** @param summary of the last day; undefined during loading @param health the last calls of each instance */
export function toFleetRows(
  capabilities: readonly CapabilitySummary[],
  summary: CallsSummary | undefined,
  health: readonly InstanceHealth[] = [],
): readonly FleetRow[] {
  const byName = new Map(summary?.items.map((calls) => [calls.name, calls]));
  const rows = capabilities.map(({ name, description, instances }): FleetRow => {
    const row = {
      up: instances.filter(isUp).length,
      instances: instances.length,
      inUse: instances.reduce((sum, { in_flight }) => sum + in_flight, 0),
      slots: instances.filter(isUp).reduce((sum, { max_concurrency }) => sum + max_concurrency, 0),
      calls: summary === undefined ? null : (byName.get(name) ?? noCalls),
    };
    const last = callsOfCapability(health, name, shownResults);
    return { name, description, ...row, last, price: priceOf(instances), trouble: troubleOf(row) };
  });
  return rows.sort(
    (a, b) =>
      order.indexOf(a.trouble) - order.indexOf(b.trouble) ||
      failedOf(b) - failedOf(a) ||
      a.name.localeCompare(b.name),
  );
}

/** Its drain, full slots, and registrations that disagree. */
export function describeHostTrouble({ drain, held, slots, warnings }: Host): readonly string[] {
  const state =
    drain !== undefined
      ? [`No new calls: ${describeDrain(drain)}`]
      : held >= slots
        ? ['Full: calls wait']
        : [];
  return [...state, ...warnings];
}
