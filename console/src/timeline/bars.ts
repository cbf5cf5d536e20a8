/** The bars of a row: when a call waited, when it was called, and behind it what the router expected. */
import type { Tone } from '../shared/state.ts';
import type { TimeScale } from './scale.ts';
import type { TimelineCall, TimelineLine } from './timeline-model.ts';

export interface Bar {
  readonly key: string;
  readonly left: number;
  readonly width: number;
  readonly tone: Tone;
  readonly kind: 'waiting' | 'called' | 'expected';
  readonly title: string;
  /** From the top of the row; retries and revisions stand below one another. */
  readonly lane: number;
}

function toneOfCall({ state, level }: TimelineCall): Tone {
  if (state === 'dispatched' || state === 'reserved' || state === 'running') return 'running';
  if (state === 'lost' || state === 'released' || state === 'failed') return 'failed';
  return level === null || level === 0 ? 'done' : 'person';
}

const mostLanes = 3;
const leastWidth = 0.0015;
/** A ghost that is longer than so many times its bar says nothing but that the router knew nothing yet. */
const mostGhost = 3;

export interface BarOptions {
  readonly scale: TimeScale;
  readonly now: number;
}

export function toTimeBars({ calls, fold }: TimelineLine, { scale, now }: BarOptions): Bar[] {
  return calls.flatMap((call, index): Bar[] => {
    const lane = fold === null ? Math.min(index, mostLanes - 1) : 0;
    const ready = Date.parse(call.ready_at ?? '') || null;
    const started = Date.parse(call.started_at ?? '') || null;
    const ended = Date.parse(call.finished_at ?? '') || now;
    const key = call.attempt_id ?? String(index);
    const common = { lane, title: `${call.endpoint ?? ''} ${call.state}` };
    const span = (from: number, to: number) => ({
      left: scale.at(from),
      width: Math.max(leastWidth, scale.at(to) - scale.at(from)),
    });
    const bars: Bar[] = [];
    if (fold === null && ready !== null && (started ?? ended) > ready) {
      bars.push({
        ...common,
        ...span(ready, started ?? ended),
        key: `${key} w`,
        tone: 'quiet',
        kind: 'waiting',
      });
    }
    if (started === null) return bars;
    if (call.expected_ms !== null && fold === null && call.expected_ms < mostGhost * (ended - started)) {
      bars.push({
        ...common,
        ...span(started, started + call.expected_ms),
        key: `${key} e`,
        tone: 'quiet',
        kind: 'expected',
      });
    }
    bars.push({ ...common, ...span(started, ended), key, tone: toneOfCall(call), kind: 'called' });
    return bars;
  });
}

/** By money: how much of the greatest sum of a row each call has cost, and what was expected of it. */
export function toMoneyBars({ calls }: TimelineLine, most: number): Bar[] {
  let left = 0;
  const expected = calls.reduce((sum, { expected_usd }) => sum + (expected_usd ?? 0), 0);
  const bars: Bar[] = [
    {
      key: 'e',
      left: 0,
      width: expected / most,
      tone: 'quiet',
      kind: 'expected',
      title: 'expected',
      lane: 0,
    },
  ];
  for (const [index, call] of calls.entries()) {
    const width = call.cost_usd / most;
    const isEstimate = call.certainty === 'estimated';
    const title = `${call.cost_usd} USD${isEstimate ? ', estimated' : ''}`;
    bars.push({
      key: call.attempt_id ?? String(index),
      left,
      width,
      tone: toneOfCall(call),
      kind: 'called',
      title,
      lane: 0,
    });
    left += width;
  }
  return bars.filter(({ width }) => width > 0);
}

export function sumOfCalls(calls: readonly TimelineCall[]): number {
  return calls.reduce((sum, { cost_usd }) => sum + cost_usd, 0);
}
