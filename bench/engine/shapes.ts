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

function createEffort(rounds: number, loadRuns: number, countRuns: (steps: number) => number): Effort {
  const followedRuns = Math.ceil(leastDelays / rounds);
  return {
    rounds,
    loadRuns,
    followedRuns,
    inFlight: 32,
    runsPerShape: ({ name, steps }) => (name === dispatchShape.name ? followedRuns : countRuns(steps)),
  };
}

export const fullEffort = createEffort(9, 256, (steps) => Math.max(2, Math.round(40 / steps)));
export const quickEffort = createEffort(3, 128, (steps) => Math.max(1, Math.round(12 / steps)));
