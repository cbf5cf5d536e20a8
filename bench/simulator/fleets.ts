/** Fleets and how much they are given to do. A call takes 10 s on average on an instance of speed 1. */
import type { InstanceSnapshot } from '../../src/core/routing/types.ts';

export interface Kind {
  readonly count: number;
  /** Calls per 10 s. */
  readonly speed: number;
  /** USD per call; 0 = free and local. */
  readonly usd: number;
}

export interface Fleet {
  readonly name: string;
  readonly kinds: readonly Kind[];
  readonly work: 'exponential' | 'lognormal';
  readonly isEven: boolean;
  /** Then `usd` buys 10 s, and what a call will cost is known no better than how long it will take. */
  readonly isPricedBySecond?: boolean;
}

const oneKind: Kind[] = [{ count: 20, speed: 1, usd: 0.01 }];
const twoPrices: Kind[] = [
  { count: 16, speed: 1, usd: 0.01 },
  { count: 4, speed: 1, usd: 0.02 },
];
const mixed: Kind[] = [
  { count: 8, speed: 0.5, usd: 0 },
  { count: 8, speed: 1, usd: 0.01 },
  { count: 4, speed: 2, usd: 0.03 },
];

const exponential = { work: 'exponential' } as const;
const lognormal = { work: 'lognormal' } as const;

export const fleets: Fleet[] = [
  { name: 'even: 20 of one price', kinds: oneKind, isEven: true, ...exponential },
  { name: 'even: 16 at 0.01 USD, 4 at 0.02 USD', kinds: twoPrices, isEven: true, ...exponential },
  { name: 'even: the same, few very long calls', kinds: twoPrices, isEven: true, ...lognormal },
  {
    name: 'even: the same, priced by the second',
    kinds: twoPrices,
    isEven: true,
    ...exponential,
    isPricedBySecond: true,
  },
  {
    name: 'uneven: 8 free at half speed, 8 at 0.01 USD, 4 twice as fast at 0.03 USD',
    kinds: mixed,
    isEven: false,
    ...exponential,
  },
  { name: 'uneven: the same, few very long calls', kinds: mixed, isEven: false, ...lognormal },
];

export const loads = [0.7, 0.9];

/** Milliseconds that a call takes on an instance of speed 1. */
export const meanCallMs = 10_000;

/** An instance with what the simulator knows of it. */
export interface Server {
  /** What the router sees. */
  readonly snapshot: { -readonly [Key in keyof InstanceSnapshot]: InstanceSnapshot[Key] };
  /** True mean of a call there, ms. */
  readonly meanMs: number;
  /** Calls that wait for this one and no other. */
  readonly backlog: Call[];
}

export interface Call {
  readonly number: number;
  readonly atMs: number;
  /** Share of the mean time of a call. */
  readonly work: number;
}

function priceOf(usd: number, isPricedBySecond: boolean): Pick<InstanceSnapshot, 'cost_type' | 'rate_usd'> {
  if (usd === 0) return { cost_type: 'free', rate_usd: 0 };
  return isPricedBySecond
    ? { cost_type: 'per_second', rate_usd: (usd * 1_000) / meanCallMs }
    : { cost_type: 'per_call', rate_usd: usd };
}

function createServer({ speed, usd }: Kind, id: string, isPricedBySecond: boolean): Server {
  return {
    snapshot: {
      instance_id: `ins_${id}`,
      name: 'work',
      version: '1.0.0',
      endpoint: `http://${id}:8100`,
      ...priceOf(usd, isPricedBySecond),
      tags: [],
      max_concurrency: 1,
      state: 'up',
      spec_digest: null,
      held: 0,
      reported_extra: 0,
      duration_ms: null,
      deviation_ms: null,
      mean_cost_usd: null,
      success_count: 0,
      failure_count: 0,
      breaker_until_ms: null,
      is_local: usd === 0,
      settle: 'computed',
    },
    meanMs: meanCallMs / speed,
    backlog: [],
  };
}

export function createServers({ kinds, isPricedBySecond = false }: Fleet): Server[] {
  return kinds.flatMap((kind, at) =>
    Array.from({ length: kind.count }, (_, place) =>
      createServer(kind, `${at}-${String(place).padStart(2, '0')}`, isPricedBySecond),
    ),
  );
}

/** USD. */
export function costOf({ snapshot: { cost_type, rate_usd } }: Server, durationMs: number): number {
  return cost_type === 'per_second' ? (rate_usd * durationMs) / 1_000 : rate_usd;
}

/** Calls that the fleet can take per ms. */
export function capacityOf({ kinds }: Fleet): number {
  return kinds.reduce((sum, { count, speed }) => sum + (count * speed) / meanCallMs, 0);
}

/** Mean time of a call when all instances are busy, ms: waiting is told in these. */
export function serviceTimeOf(fleet: Fleet): number {
  return fleet.kinds.reduce((sum, { count }) => sum + count, 0) / capacityOf(fleet);
}
