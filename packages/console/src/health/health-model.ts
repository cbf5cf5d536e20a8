/** Health at a glance, of a pipeline or an instance: a mark for each of the last results, and their sums in words. */
import type { CallsHealth, RunsHealth } from '@capstan/core/contracts/health';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { formatDuration, formatMoment, formatUsd } from '../shared/format.ts';
import { lookOf, type Tone } from '../shared/state.ts';

/** Results of a pipeline or an instance that are shown. */
export const shownResults = 10;

export type PipelineHealth = RunsHealth['items'][number];
export type InstanceHealth = CallsHealth['items'][number];

export interface ResultMark {
  readonly key: string;
  readonly tone: Tone;
  /** It stands for itself where colours are not seen: `×` for a failure. */
  readonly sign: '' | '×' | '!';
  readonly title: string;
  /** Undefined for a call. */
  readonly runId: string | undefined;
}

/** Oldest first, so that the newest is at the right, as on a timeline. */
export function marksOfRuns({ last }: Pick<PipelineHealth, 'last'>): readonly ResultMark[] {
  return last.toReversed().map(({ run_id, state, failed_items = 0, created_at }) => {
    const { word, tone } = lookOf(state);
    const isPartly = failed_items > 0;
    const items = isPartly ? `, ${failed_items} ${failed_items === 1 ? 'item' : 'items'} failed` : '';
    return {
      key: run_id,
      tone: isPartly ? 'waiting' : tone,
      sign: state === 'failed' ? '×' : isPartly ? '!' : '',
      title: `${formatMoment(created_at)}: ${word}${items}`,
      runId: run_id,
    };
  });
}

export function marksOfCalls(last: InstanceHealth['last']): readonly ResultMark[] {
  return last.toReversed().map(({ at, succeeded, error }, index) => ({
    key: `${at} ${index}`,
    tone: succeeded ? 'done' : 'failed',
    sign: succeeded ? '' : '×',
    title: `${formatMoment(at)}: ${succeeded ? 'succeeded' : (error ?? 'failed')}`,
    runId: undefined,
  }));
}

/** `2 failed, 8 succeeded, the newest failed`: the marks in words. */
export function describeMarks(marks: readonly ResultMark[]): string {
  const failed = marks.filter(({ sign }) => sign === '×').length;
  const newest = marks.at(-1);
  if (newest === undefined) return 'none';
  const words = [...(failed === 0 ? [] : [`${failed} failed`]), `${marks.length - failed} others`];
  return `${failed === 0 ? `${marks.length}, none failed` : words.join(', ')}; newest, ${newest.title}`;
}

/** Fewer results are not significant. */
const fewest = 5;

/** `9 of 10 runs`: a share always names its total. */
export function describeShare(
  { ended, succeeded }: Pick<PipelineHealth, 'ended' | 'succeeded'>,
  what: 'call' | 'run',
): string {
  if (ended === 0) return `no ${what}s`;
  const words = `${succeeded} of ${ended} ${what}${ended === 1 ? '' : 's'}`;
  return ended < fewest ? `${words}, too few ${what}s` : words;
}

/** `1.2 s · $0.0021`; empty without a success. */
export function describeMedian({ p50_ms, p50_usd }: Pick<PipelineHealth, 'p50_ms' | 'p50_usd'>): string {
  return [p50_ms === null ? '' : formatDuration(p50_ms), p50_usd === null ? '' : formatUsd(p50_usd)]
    .filter((part) => part !== '')
    .join(' · ');
}

/** Fewer than half succeeded, or the newest that ended failed. */
export function isIll({ last, ended, succeeded }: PipelineHealth): boolean {
  const newest = last.find(({ state }) => ['succeeded', 'failed', 'cancelled'].includes(state));
  return newest?.state === 'failed' || (ended >= fewest && succeeded * 2 < ended);
}

/** Those in trouble first, then those that ran last. */
export function inOrderOfHealth(items: readonly PipelineHealth[]): readonly PipelineHealth[] {
  const at = ({ last }: PipelineHealth): string => last[0]?.created_at ?? '';
  return items.toSorted((a, b) => Number(isIll(b)) - Number(isIll(a)) || at(b).localeCompare(at(a)));
}

/** The next start of a pipeline by any of its schedules; null without one. */
export function nextStartOf(
  schedules: readonly Pick<Schedule, 'pipeline' | 'next_at'>[],
  pipeline: string,
): string | null {
  const starts = schedules.filter((one) => one.pipeline === pipeline).flatMap(({ next_at }) => next_at);
  return starts.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0] ?? null;
}

/** The last calls of all instances of a capability together, newest first. */
export function callsOfCapability(
  items: readonly InstanceHealth[],
  name: string,
  most: number,
): InstanceHealth['last'] {
  return items
    .filter((item) => item.name === name)
    .flatMap(({ last }) => last)
    .toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
    .slice(0, most);
}
