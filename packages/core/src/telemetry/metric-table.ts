/**
 * Every metric by its name without the prefix `capstan_`. The registry, docs/reference/metrics.md, the alerts and the
 * dashboard are made from this one table. No run, step or key is a label. Labels with values that others choose are
 * open: beyond a number of names, further ones become `other`.
 */
interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
  /**
   * shared: it is counted in the database, and only the process with the maintenance lock exports it. Default: each
   * process exports its own.
   */
  readonly of?: 'shared';
}

/** A call over HTTP, from a millisecond to a minute. */
const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** An attempt: from a lookup to an hour of rendering. */
const attemptBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];
/** Calls wait for a slot up to two seconds at a time. */
const claimBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5];
/** A run may wait days for a person. */
const runBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400, 604_800];

const api = {
  http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from a request to the end of its answer; route is none where no route took it.',
    labels: ['route', 'method', 'status'],
    buckets: requestBuckets,
  },
  http_requests_in_flight: { type: 'gauge', help: 'Requests that are being answered.', labels: [] },
  event_loop_delay_seconds: {
    type: 'gauge',
    help: 'How late the event loop of the process was since the last scrape.',
    labels: ['quantile'],
  },
  database_pool_connections: {
    type: 'gauge',
    help: 'Connections to the database that are used or free, and askers that are pending.',
    labels: ['state'],
  },
} as const satisfies Record<string, MetricRow>;

const runs = {
  runs_total: {
    type: 'counter',
    help: 'Runs that ended, by how; counted by the process that closed each.',
    labels: ['pipeline', 'state'],
  },
  run_duration_seconds: {
    type: 'histogram',
    help: 'Time from the request for a run to its end.',
    labels: ['pipeline'],
    buckets: runBuckets,
  },
  runs: { type: 'gauge', help: 'Open runs.', labels: ['state'], of: 'shared' },
  schedule_starts_total: {
    type: 'counter',
    help: 'Starts of schedules: started, refused (its run failed at once), missed (not in time), skipped (by its own settings).',
    labels: ['outcome'],
  },
  hook_deliveries_total: {
    type: 'counter',
    help: 'Deliveries to hooks: started, repeated, filtered, answered (a check by the sender), failed (no job), refused (no run), unsigned.',
    labels: ['outcome'],
  },
  waiting_steps: {
    type: 'gauge',
    help: 'Steps and items that wait, by what for; capability names the one that is missing.',
    labels: ['reason', 'capability'],
    of: 'shared',
  },
} as const satisfies Record<string, MetricRow>;

const routing = {
  attempts_total: {
    type: 'counter',
    help: 'Attempts that were settled, by how the call ended; price is free or paid.',
    labels: ['capability', 'outcome', 'price'],
  },
  attempt_duration_seconds: {
    type: 'histogram',
    help: 'Time that the call of an attempt took.',
    labels: ['capability'],
    buckets: attemptBuckets,
  },
  later_answers_total: {
    type: 'counter',
    help: 'Answers that instances sent after a 202: taken, late (the call no longer waited), again (its address was used), unknown. waiting_steps shows the calls that wait.',
    labels: ['outcome'],
  },
  claim_wait_seconds: {
    type: 'histogram',
    help: 'Time from asking for an instance to holding a slot on it.',
    labels: ['capability', 'priority'],
    buckets: claimBuckets,
  },
  no_claim_total: {
    type: 'counter',
    help: 'Times that no instance could be claimed, by the code of the error.',
    labels: ['capability', 'reason'],
  },
  instances: {
    type: 'gauge',
    help: 'Registered instances; price is free or paid.',
    labels: ['capability', 'state', 'price'],
    of: 'shared',
  },
  instance_slots: {
    type: 'gauge',
    help: 'Slots of instances that are up.',
    labels: ['capability'],
    of: 'shared',
  },
  instance_slots_held: {
    type: 'gauge',
    help: 'Slots that hold a call.',
    labels: ['capability'],
    of: 'shared',
  },
  breaker_open: {
    type: 'gauge',
    help: '1 while the breaker of an instance that is not down is open, else 0.',
    labels: ['capability', 'endpoint'],
    of: 'shared',
  },
} as const satisfies Record<string, MetricRow>;

const money = {
  spend_usd_total: {
    type: 'counter',
    help: 'USD that settled attempts cost; estimated: no instance reported the cost.',
    labels: ['project_id', 'capability', 'certainty'],
  },
  budget_limit_usd: {
    type: 'gauge',
    help: 'Limit of the day of a project, of one of its capabilities, or of all projects (global).',
    labels: ['scope', 'project_id'],
    of: 'shared',
  },
  budget_spent_usd: {
    type: 'gauge',
    help: 'USD spent today of a budget that has a limit.',
    labels: ['scope', 'project_id'],
    of: 'shared',
  },
  budget_reserved_usd: {
    type: 'gauge',
    help: 'USD that open calls have reserved of a budget that has a limit.',
    labels: ['scope', 'project_id'],
    of: 'shared',
  },
  calls_stopped_total: {
    type: 'counter',
    help: 'Calls that were stopped on their way, because their budgets had no more room.',
    labels: ['capability'],
  },
  budget_refusals_total: { type: 'counter', help: 'Calls for which a budget had no room.', labels: [] },
  budget_drift_nano_usd_total: {
    type: 'counter',
    help: 'Nano-USD by which budgets differed from their attempts, and were corrected.',
    labels: [],
  },
} as const satisfies Record<string, MetricRow>;

const ladder = {
  escalations_total: {
    type: 'counter',
    help: 'Transitions of ladders, by the level at which they stood and what became of it.',
    labels: ['level', 'outcome'],
  },
  skill_uses_total: { type: 'counter', help: 'Uses of skills, by whether they helped.', labels: ['outcome'] },
  reviews: {
    type: 'gauge',
    help: 'Questions to a person that are not decided.',
    labels: ['kind', 'state'],
    of: 'shared',
  },
  reviews_oldest_seconds: {
    type: 'gauge',
    help: 'Age of the oldest of them; 0 where there is none.',
    labels: ['kind'],
    of: 'shared',
  },
  model_tokens_total: {
    type: 'counter',
    help: 'Tokens that models report as read (input) and written (output).',
    labels: ['model', 'type'],
  },
} as const satisfies Record<string, MetricRow>;

const engine = {
  repairs_total: {
    type: 'counter',
    help: 'Repairs by maintenance after a part had died or was away; 0 in steady state.',
    labels: ['kind'],
  },
  maintenance_failures_total: {
    type: 'counter',
    help: 'Duties of maintenance that failed; maintenance retries each.',
    labels: ['duty'],
  },
  maintenance_holder: { type: 'gauge', help: '1 in the process that holds maintenance.', labels: [] },
  deliveries_oldest_seconds: {
    type: 'gauge',
    help: 'Age of the oldest row that waits for delivery to Temporal; 0 if there is none.',
    labels: [],
    of: 'shared',
  },
  event_horizon_lag_seconds: {
    type: 'gauge',
    help: 'Age of the oldest transaction that is open in the database cluster: events are late by that.',
    labels: [],
    of: 'shared',
  },
} as const satisfies Record<string, MetricRow>;

export const metricPrefix = 'capstan_';

/** In the order in which they are documented. */
export const metricGroups = {
  API: api,
  Runs: runs,
  Routing: routing,
  Money: money,
  Ladder: ladder,
  Engine: engine,
};

export const metricTable = { ...api, ...runs, ...routing, ...money, ...ladder, ...engine };

type Table = typeof metricTable;
export type MetricName = keyof Table;
type NamesOf<Type extends MetricRow['type']> = {
  [Name in MetricName]: Table[Name]['type'] extends Type ? Name : never;
}[MetricName];
export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;
/** All labels of a metric; none is optional. */
export type LabelsOf<Name extends MetricName> = Readonly<Record<Table[Name]['labels'][number], string>>;

/** Labels whose values others choose. */
export const openLabels: ReadonlySet<string> = new Set([
  'pipeline',
  'capability',
  'endpoint',
  'project_id',
  'scope',
  'model',
]);
/** Distinct names of an open label per process. */
export const mostNames = 200;

/**
 * Limits the number of names, so that invented ones cannot fill a registry. A name stays while it is used: a new one
 * replaces the one that was unused longest.
 */
export interface NameLimit {
  /**
   * @param round names used in the same round do not replace each other
   * @returns the name, or `other` when no room is left
   */
  use(name: string, round: object): string;
  has(name: string): boolean;
}

/** @param onEnd called with a name that was replaced */
export function createNameLimit(most: number, onEnd: (name: string) => void): NameLimit {
  /** The name that was unused longest comes first. */
  const known = new Map<string, object>();
  const findPlace = (round: object): boolean => {
    if (known.size < most) return true;
    const [oldest] = known;
    if (oldest === undefined || oldest[1] === round) return false;
    known.delete(oldest[0]);
    onEnd(oldest[0]);
    return true;
  };
  return {
    has: (name) => known.has(name),
    use: (name, round) => {
      if (!known.delete(name) && !findPlace(round)) return 'other';
      known.set(name, round);
      return name;
    },
  };
}
