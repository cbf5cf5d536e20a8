/** The runs that are timed, and how often; all sides run the same ones. */
import { randomUUID } from 'node:crypto';

export interface Shape {
  readonly name: string;
  readonly kind: 'sequential' | 'parallel';
  readonly steps: number;
}

/** Also tells how long the first dispatch takes. */
export const dispatchShape: Shape = { name: '3 in sequence', kind: 'sequential', steps: 3 };

export const latencyShapes: readonly Shape[] = [
  dispatchShape,
  { name: '10 in sequence', kind: 'sequential', steps: 10 },
  { name: '40 in sequence', kind: 'sequential', steps: 40 },
  { name: '20 in parallel', kind: 'parallel', steps: 20 },
  { name: '100 in parallel', kind: 'parallel', steps: 100 },
];

export const loadShape: Shape = { name: 'three-step runs', kind: 'sequential', steps: 3 };

/** What the steps of one run are given besides a number: no other run's, about the size of a real small input. */
export function makeText(): string {
  return randomUUID().padEnd(200, 'x');
}

export interface Effort {
  readonly rounds: number;
  /** Runs of one shape in a row, one at a time. */
  readonly runsPerShape: (shape: Shape) => number;
  /** Runs of one round whose events are followed, one at a time. */
  readonly followedRuns: number;
  readonly inFlight: number;
  /** Runs of one round under load. */
  readonly loadRuns: number;
}

/** Delays are told from at least this many runs in all rounds. */
const leastDelays = 100;

/** @param rounds instead of nine, or of three where it is quick */
export function createEffort(isQuick: boolean, rounds = isQuick ? 3 : 9): Effort {
  const followedRuns = Math.ceil(leastDelays / rounds);
  const [least, steps] = isQuick ? [1, 12] : [2, 40];
  return {
    rounds,
    loadRuns: isQuick ? 128 : 256,
    followedRuns,
    inFlight: 32,
    runsPerShape: (shape) =>
      shape.name === dispatchShape.name ? followedRuns : Math.max(least, Math.round(steps / shape.steps)),
  };
}
