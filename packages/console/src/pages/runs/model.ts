/** The rows and bars of the list of runs. */

import type { RunState, RunSummary } from '@capstan/core/contracts/run';
import type { RunsSummary } from '@capstan/core/contracts/run-picture';
import { countEnded, countSucceeded } from '@capstan/core/run/ended-steps';
import type { BarColumn } from '../../shared/bar-column.ts';
import { formatMoment, formatUsd } from '../../shared/format.ts';
import { stateLooks } from '../../shared/state.ts';

const hourMs = 3_600_000;

/** From the bottom of a bar to its top. */
const order: readonly RunState[] = [
  'succeeded',
  'cancelled',
  'failed',
  'cancelling',
  'paused',
  'running',
  'queued',
];

const fills: Readonly<Record<RunState, string>> = {
  queued: 'fill-quiet opacity-50',
  running: 'fill-running',
  paused: 'fill-waiting',
  cancelling: 'fill-quiet',
  succeeded: 'fill-done opacity-75',
  failed: 'fill-failed',
  cancelled: 'fill-quiet opacity-70',
};

export function toColumns({ buckets }: RunsSummary): BarColumn[] {
  return buckets.map(({ at, by_state, cost_usd }) => {
    const parts = order.map((state) => ({ name: state, value: by_state[state] ?? 0, fill: fills[state] }));
    const said = parts
      .filter(({ value }) => value > 0)
      .map(({ name, value }) => `${value} ${stateLooks[name].word}`);
    const words = said.length === 0 ? 'no runs' : `${said.join(', ')}, ${formatUsd(cost_usd)}`;
    return { key: at, title: `${formatMoment(at)}: ${words}`, parts };
  });
}

export function countByState({ buckets }: RunsSummary): readonly (readonly [RunState, number])[] {
  const counts = new Map<RunState, number>();
  for (const { by_state } of buckets) {
    for (const [state, count = 0] of Object.entries(by_state) as [RunState, number | undefined][]) {
      counts.set(state, (counts.get(state) ?? 0) + count);
    }
  }
  return order.toReversed().flatMap((state) => {
    const count = counts.get(state) ?? 0;
    return count === 0 ? [] : [[state, count] as const];
  });
}

export interface Span {
  readonly since: string;
  readonly until: string;
}

export const spans = [
  { name: 'last hour', hours: 1 },
  { name: 'last 24 hours', hours: 24 },
  { name: 'last 7 days', hours: 24 * 7 },
  { name: 'last 30 days', hours: 24 * 30 },
] as const;

/**
 * The time range of the bars. Its ends are whole minutes, so that the query stays the same for a while; the
 * present minute is within it, with the runs that have just begun.
 * @param since RFC 3339; absent: the last day
 */
export function toSpan(
  search: { readonly since?: string | undefined; readonly until?: string | undefined },
  now: number,
): Span {
  const minute = 60_000;
  const until = Date.parse(search.until ?? '') || (Math.floor(now / minute) + 1) * minute;
  const since = Date.parse(search.since ?? '') || until - 24 * hourMs;
  return {
    since: new Date(Math.min(since, until - minute)).toISOString(),
    until: new Date(until).toISOString(),
  };
}

export interface ShownProgress {
  /** Succeeded, or reused from another run. */
  readonly done: number;
  readonly all: number;
  readonly failed: number;
  /** Neither ended nor pending: they run or wait. */
  readonly begun: number;
}

/** Null when it has no steps to count. */
export function progressOf(steps: RunSummary['step_counts']): ShownProgress | null {
  const { all } = countEnded(steps);
  const failed = (steps.failed ?? 0) + (steps.unknown ?? 0);
  const { ended } = countEnded(steps);
  const begun = all - ended - (steps.pending ?? 0);
  return all === 0 ? null : { done: countSucceeded(steps), all, failed, begun };
}

/** Rows on a page of the list. */
const pageRows = 50;

export interface PlaceInList {
  /** From 0 on. */
  readonly page: number;
  readonly shown: number;
  /** Undefined: unknown so far. */
  readonly all: number | undefined;
}

/** `51 to 100 of 1,068` */
export function describePlace({ page, shown, all }: PlaceInList): string {
  if (shown === 0) return '';
  const first = page * pageRows + 1;
  const last = first + shown - 1;
  const rows = [...new Set([first, last])].map((row) => row.toLocaleString('en')).join(' to ');
  return all === undefined ? rows : `${rows} of ${all.toLocaleString('en')}`;
}

export interface FollowedRun {
  readonly text: string;
  readonly run: string | undefined;
  readonly review: string | undefined;
}

/** The run that works on the same failure, while this one waits for its skill. */
export function followedBy({
  finished_at,
  follows,
}: Pick<RunSummary, 'finished_at' | 'follows'>): FollowedRun | null {
  if (finished_at !== null || follows === undefined) return null;
  const { run_id: run, review_id: review } = follows;
  return { text: review === undefined ? 'Open the other run' : 'Open its review', run, review };
}
