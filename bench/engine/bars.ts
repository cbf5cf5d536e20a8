/** What Capstan promises. Rivals and other checkouts have no bars. */
import { ratioOf, readFigure } from './figures.ts';
import type { KeptRound } from './kept-results.ts';
import type { Round } from './measure.ts';
import { latencyShapes, slowShape } from './shapes.ts';
import type { SideName } from './side.ts';
import { median, percentile99 } from './statistics.ts';

type OwnSide = Extract<SideName, 'capstan' | 'queued'>;

/** Whether the value may be at most, or must be at least, the limit. */
type Limit = readonly ['<=' | '>=', number];

interface Bar {
  readonly side: OwnSide;
  readonly name: string;
  readonly limit: Limit;
  /** Undefined where nothing was measured. */
  readonly measure: (rounds: readonly Round[]) => number | undefined;
}

/** A bar, and what was measured. */
export interface Check {
  readonly side: OwnSide;
  readonly name: string;
  readonly value: number;
  readonly kind: '<=' | '>=';
  readonly limit: number;
  readonly passed: boolean;
}

function byOther(side: OwnSide, figure: string, limit: Limit, other: SideName = 'bare'): Bar {
  const read = readFigure(figure);
  const name = `${figure}, by ${other}`;
  return { side, name, limit, measure: (rounds) => ratioOf(rounds, read, [side, other]) };
}

function ofDelays(side: OwnSide, name: string, limitMs: number, reduce: (delays: number[]) => number): Bar {
  const measure = (rounds: readonly Round[]): number | undefined => {
    const delays = rounds.flatMap(({ eventDelays }) => eventDelays[side] ?? []);
    return delays.length === 0 ? undefined : reduce(delays);
  };
  return { side, name: `event to stream, ${name} ms`, limit: ['<=', limitMs], measure };
}

function ofKept(name: string, limit: number, reduce: (kept: readonly KeptRound[]) => number): Bar {
  const measure = (rounds: readonly Round[]): number | undefined => {
    const kept = rounds.flatMap((round) => round.kept.capstan ?? []);
    return kept.length === 0 ? undefined : reduce(kept);
  };
  return { side: 'capstan', name, limit: ['<=', limit], measure };
}

/** A process of Capstan under load. */
function ofProcess(part: string, limitMs: number): Bar {
  const measure = (rounds: readonly Round[]): number | undefined => {
    const spent = rounds.flatMap(({ load }) => load.capstan?.processorMs[part] ?? []);
    return spent.length === 0 ? undefined : median(spent);
  };
  return { side: 'capstan', name: `processor ms/run, ${part}`, limit: ['<=', limitMs], measure };
}

function most(values: readonly number[]): number {
  return Math.max(...values);
}

const ofEvents = (['capstan', 'queued'] as const).flatMap((side) => [
  ofDelays(side, 'median', 50, median),
  ofDelays(side, 'p99', 150, percentile99),
]);

const bars: readonly Bar[] = [
  byOther('capstan', '3 in sequence', ['<=', 0.65]),
  byOther('capstan', '10 in sequence', ['<=', 0.4]),
  byOther('capstan', '40 in sequence', ['<=', 0.25]),
  byOther('capstan', '40 in sequence', ['<=', 1.5], 'dbos'),
  byOther('capstan', '20 in parallel', ['<=', 0.6]),
  byOther('capstan', '100 in parallel', ['<=', 0.4]),
  byOther('capstan', slowShape.name, ['<=', 1.02]),
  byOther('capstan', 'runs per second', ['>=', 1.5]),
  byOther('capstan', 'processor ms/run', ['<=', 0.75]),
  byOther('capstan', 'first dispatch', ['<=', 1.2]),
  byOther('capstan', 'first dispatch', ['<=', 1.3], 'floor'),
  byOther('capstan', 'runs per second', ['>=', 0.75], 'floor'),
  ofProcess('worker', 9.3),
  ofProcess('server', 3.15),
  ofProcess('Postgres', 5.6),
  ...latencyShapes.map((shape) => byOther('queued', shape.name, ['<=', shape === slowShape ? 1.02 : 1.3])),
  ...ofEvents,
  ofKept('kept step, ms', 5, (kept) => median(kept.flatMap(({ stepMs }) => stepMs))),
  ofKept('kept steps, USD', 0, (kept) => most(kept.map(({ usd }) => usd))),
  ofKept('kept steps, calls', 0, (kept) => most(kept.map(({ calls }) => calls))),
  ofKept('1,000 equal items, calls', 1, (kept) => most(kept.map(({ equalItems }) => equalItems.calls))),
];

/** @returns the bars of those that took part */
export function checkBars(rounds: readonly Round[]): readonly Check[] {
  return bars.flatMap(({ side, name, limit: [kind, limit], measure }) => {
    const value = measure(rounds);
    if (value === undefined) return [];
    return [{ side, name, value, kind, limit, passed: kind === '<=' ? value <= limit : value >= limit }];
  });
}
