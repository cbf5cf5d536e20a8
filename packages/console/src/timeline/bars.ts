/** The bars of a row: waits, calls, and behind them the expectation. */
import { formatDuration, formatTimeOfDay, formatUsd } from '../shared/format.ts';
import { lookOf, type Tone } from '../shared/state.ts';
import type { StepGhost } from './ghost-model.ts';
import { describeGhost } from './ghost-words.ts';
import type { TimeScale } from './scale.ts';
import { hasFailed, isCancelled, type TimelineCall, type TimelineLine } from './timeline-model.ts';

export interface Bar {
  readonly key: string;
  readonly left: number;
  readonly width: number;
  readonly tone: Tone;
  /** failed: of one among the items of a row. planned, perhaps: today's plan of a step that has not begun; a `perhaps` step depends on the ends of others. */
  readonly kind: 'waiting' | 'retry' | 'called' | 'failed' | 'cancelled' | 'expected' | 'planned' | 'perhaps';
  readonly title: string;
  /** From the top of the row; retries and revisions are below one another. */
  readonly lane: number;
}

const callTones: Readonly<Record<string, Tone>> = {
  reserved: 'running',
  dispatched: 'running',
  lost: 'failed',
  released: 'failed',
};

export function toneOfCall({ state, level, attempt_id, error }: TimelineCall): Tone {
  if (attempt_id === null) return lookOf(state).tone;
  if (error === 'run_cancelled') return 'quiet';
  if (error !== null) return 'failed';
  return callTones[state] ?? (level === null || level === 0 ? 'done' : 'person');
}

const mostLanes = 3;
const leastWidth = 0.0015;
/** A ghost this many times longer than its bar only means that the router knew nothing yet. */
const mostGhost = 3;

export interface BarOptions {
  readonly scale: TimeScale;
  readonly now: number;
}

function spanOn(scale: TimeScale, from: number, to: number): Pick<Bar, 'left' | 'width'> {
  return { left: scale.at(from), width: Math.max(leastWidth, scale.at(to) - scale.at(from)) };
}

export function kindOfGhost({ hasBegun, isSure }: StepGhost): Bar['kind'] {
  if (hasBegun) return 'expected';
  return isSure ? 'planned' : 'perhaps';
}

function ghostBar(ghost: StepGhost, { scale, now }: BarOptions): Bar {
  const title = describeGhost(ghost, now);
  const span = spanOn(scale, ghost.from, ghost.to);
  return { ...span, key: 'ghost', tone: 'quiet', kind: kindOfGhost(ghost), title, lane: 0 };
}

/** The final length of an open call's bar is unknown, so its ghost is always shown. */
function expectedEnd({ expected_ms, finished_at }: TimelineCall, started: number): number | null {
  if (expected_ms === null) return null;
  const took = (Date.parse(finished_at ?? '') || Number.POSITIVE_INFINITY) - started;
  return expected_ms < mostGhost * took ? started + expected_ms : null;
}

interface PlacedCall {
  readonly call: TimelineCall;
  readonly index: number;
  /** The previous call failed, so this wait is for a retry. */
  readonly isRetry: boolean;
  /** All calls of a step with items, in one row. */
  readonly isHead: boolean;
}

function callBars({ call, index, isRetry, isHead }: PlacedCall, { scale, now }: BarOptions): Bar[] {
  const ready = Date.parse(call.ready_at ?? '') || null;
  const started = Date.parse(call.started_at ?? '') || null;
  const ended = Date.parse(call.finished_at ?? '') || now;
  const key = call.attempt_id ?? String(index);
  const lane = isHead ? 0 : Math.min(index, mostLanes - 1);
  const common = { lane, title: describeCall(call, isHead) };
  const bars: Bar[] = [];
  const isWait = !isHead || call.attempt_id === null;
  if (isWait && ready !== null && (started ?? ended) > ready) {
    const span = spanOn(scale, ready, started ?? ended);
    const kind = isRetry ? 'retry' : 'waiting';
    const reason = isRetry ? 'waiting for another attempt' : waitTitle(call);
    const title = [reason, exactSpan(ready, started ?? (call.finished_at === null ? null : ended), now)].join(
      '\n',
    );
    bars.push({ ...common, ...span, key: `${key} w`, tone: 'quiet', kind, title });
  }
  if (started === null) return bars;
  const expected = isHead ? null : expectedEnd(call, started);
  if (expected !== null) {
    const span = spanOn(scale, started, expected);
    bars.push({ ...common, ...span, key: `${key} e`, tone: 'quiet', kind: 'expected' });
  }
  bars.push({
    ...common,
    ...spanOn(scale, started, ended),
    key,
    tone: toneOfCall(call),
    kind: kindOfCall(call, isHead),
    title: [common.title, exactSpan(started, call.finished_at === null ? null : ended, now)].join('\n'),
  });
  return bars;
}

function kindOfCall(call: TimelineCall, isHead: boolean): Bar['kind'] {
  if (isCancelled(call)) return 'cancelled';
  return isHead && hasFailed(call) ? 'failed' : 'called';
}

/** `item 3 at http://…: settled, $0.01`; a failed call has the code of its error. */
function describeCall({ item, endpoint, state, error, cost_usd }: TimelineCall, isHead: boolean): string {
  const where = [
    ...(isHead && item !== null ? [`item ${item}`] : []),
    ...(endpoint === null ? [] : [endpoint]),
  ];
  const cost = cost_usd === 0 ? [] : [formatUsd(cost_usd)];
  return `${where.join(' at ')}: ${[isCancelled({ error }) ? 'stopped' : (error ?? state), ...cost].join(', ')}`;
}

/** `14:03:27.123 to 14:03:29.456, 2.3 s` */
function exactSpan(from: number, to: number | null, now: number): string {
  const [begin, end] = [from, to ?? now].map((moment) => formatTimeOfDay(new Date(moment).toISOString()));
  return `${begin} to ${to === null ? 'now' : end}, ${formatDuration((to ?? now) - from)}`;
}

function waitTitle({ attempt_id, endpoint, state }: TimelineCall): string {
  return attempt_id === null ? `${endpoint ?? ''} ${state}`.trim() : 'waiting for an instance';
}

export function toTimeBars(row: TimelineLine, options: BarOptions): Bar[] {
  const behind = row.ghost === null ? [] : [ghostBar(row.ghost, options)];
  const isHead = row.fold !== null;
  const bars = row.calls.flatMap((call, index, all) => {
    const isRetry = hasFailed(all[index - 1]);
    return callBars({ call, index, isRetry, isHead }, options);
  });
  // A failure is never hidden by the items that succeeded.
  return [...behind, ...bars.toSorted((a, b) => Number(a.kind === 'failed') - Number(b.kind === 'failed'))];
}
