/**
 * Races: a step with `first` starts as soon as N of the steps that it names have succeeded, and what only the race needs
 * is called off then; the items of a step with `enough` are called off when N of their answers count.
 *
 * R1 Nothing of a race begins once it is decided: it is won, it can no longer be won, or its step has ended.
 * R2 A step that another one outside of the race needs is never called off.
 * R3 What was called off ends as `cancelled`, and neither its failure nor its success has a consequence.
 */
import type { ErrorCode } from '../contracts/errors.ts';
import type { Failure } from '../contracts/primitives.ts';

export interface Race {
  readonly count: number;
  /** Indexes of the steps that take part. */
  readonly of: readonly number[];
}

/** Of a race that is not decided. */
export interface RaceState {
  readonly of: ReadonlySet<number>;
  readonly count: number;
  /** Steps that have succeeded, and those that have not ended. */
  good: number;
  open: number;
  isDecided: boolean;
}

export function openRace({ count, of }: Race): RaceState {
  return { of: new Set(of), count, good: 0, open: of.length, isDecided: false };
}

export function isWon({ good, count }: RaceState): boolean {
  return good >= count;
}

export function isLost({ good, open, count }: RaceState): boolean {
  return good + open < count;
}

/** The steps after each step. */
export function successorsOf(steps: readonly { readonly dependencies: readonly number[] }[]): number[][] {
  const successors: number[][] = steps.map(() => []);
  for (const [index, { dependencies }] of steps.entries()) {
    for (const dependency of dependencies) successors[dependency]?.push(index);
  }
  return successors;
}

interface Edges {
  readonly successors: readonly (readonly number[])[];
  readonly dependenciesOf: (step: number) => readonly number[];
}

/**
 * The steps that only a race needs (R2): those that take part, and all before them, whose successors are all among them.
 * @param join the step that waits for the race
 */
export function findRaceRegion({ successors, dependenciesOf }: Edges, join: number, { of }: Race): number[] {
  /** Successors outside of the region, by step. */
  const outside = new Map(of.map((step) => [step, (successors[step]?.length ?? 1) - 1]));
  const region = of.filter((step) => step !== join && outside.get(step) === 0);
  for (const step of region) {
    for (const before of dependenciesOf(step)) {
      const left = (outside.get(before) ?? successors[before]?.length ?? 0) - 1;
      outside.set(before, left);
      if (left === 0) region.push(before);
    }
  }
  return region.sort((a, b) => a - b);
}

function failure(code: Extract<ErrorCode, 'enough' | 'not_enough'>, message: string): Failure {
  return { code, message };
}

export function enoughSteps(joinId: string, { good, of }: RaceState): Failure {
  return failure('enough', `${good} of ${of.size} steps were enough for ${joinId}`);
}

/** @param first why the first of them did not succeed */
export function tooFewSteps({ good, open, count, of }: RaceState, first: string): Failure {
  const most = `${count} of ${of.size} steps are needed, at most ${good + open} can succeed`;
  return failure('not_enough', `${most}; first ${first}`);
}

/** @param joinId of a step that has ended without its race */
export function notNeeded(joinId: string): Failure {
  return failure('not_enough', `${joinId}, which needed it, has ended`);
}

export function enoughItems(good: number, all: number): Failure {
  return failure('enough', `${good} of ${all} items were enough`);
}

interface Items {
  /** Answers that are enough. */
  readonly enough: number;
  /** Items that have ended and do not count. */
  readonly missed: number;
  readonly all: number;
  readonly first: string | null;
}

export function tooFewItems({ enough, missed, all, first }: Items): Failure {
  const most = `${enough} of ${all} items are needed, at most ${all - missed} can count`;
  return failure('not_enough', first === null ? most : `${most}; first ${first}`);
}
