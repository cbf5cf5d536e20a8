/** The runs that are timed, and how often; all sides run the same ones. */
import { randomUUID } from 'node:crypto';
import type { CapabilityKey } from './capabilities.ts';

export interface Shape {
  readonly name: string;
  readonly kind: 'sequential' | 'parallel';
  readonly steps: number;
  readonly capability: Extract<CapabilityKey, 'echo' | 'slow'>;
}

function inSequence(steps: number): Shape {
  return { name: `${steps} in sequence`, kind: 'sequential', steps, capability: 'echo' };
}

function inParallel(steps: number): Shape {
  return { name: `${steps} in parallel`, kind: 'parallel', steps, capability: 'echo' };
}

/** Also measures how long the first dispatch takes. */
export const dispatchShape: Shape = inSequence(3);

/** Too long for anybody to do without a queue. */
export const slowShape: Shape = { name: '3 of 500 ms', kind: 'sequential', steps: 3, capability: 'slow' };

export const latencyShapes: readonly Shape[] = [
  dispatchShape,
  inSequence(10),
  inSequence(40),
  inParallel(20),
  inParallel(100),
  slowShape,
];

export const loadShape: Shape = { ...dispatchShape, name: 'three-step runs' };

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

/** Delays are reported from at least this many runs in all rounds. */
const leastDelays = 100;

/** Runs of the slow shape in a round: its capability's time is nearly all of theirs, so that they differ little. */
const slowRuns = 2;

/** @param rounds instead of nine, or of three where it is quick */
export function createEffort(isQuick: boolean, rounds = isQuick ? 3 : 9): Effort {
  const followedRuns = Math.ceil(leastDelays / rounds);
  const [least, steps] = isQuick ? [1, 12] : [5, 100];
  return {
    rounds,
    loadRuns: isQuick ? 128 : 256,
    followedRuns,
    inFlight: 32,
    runsPerShape: (shape) => {
      if (shape === dispatchShape) return followedRuns;
      return shape.capability === 'slow' ? slowRuns : Math.max(least, Math.round(steps / shape.steps));
    },
  };
}
