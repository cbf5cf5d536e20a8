/**
 * A batch of short steps: inline units that are executed together, those that are ready now and the steps that the machine
 * would execute next as long as each of them succeeds. Together they spare the workflow a turn for each; the machine is
 * told of them one by one all the same. The invariants of a batch are B1 to B14 in ARCHITECTURE.md, each with its test:
 * B1 and B2 are kept here and in workflows/inline-batches.ts, B4 to B8 in services/steps.
 */
import type { MachineState, MachineStepState } from './machine-state.ts';

/** B1: whether nothing of the run is under way, or waits, but so many units. */
export function isAlone({ inFlight, waits }: MachineState, units: number): boolean {
  return inFlight === units && waits.size === 0;
}

/** A step that may begin as soon as some of its batch have succeeded. */
export interface InlineFollower {
  readonly step: number;
  /** Those of its dependencies that are in the batch. */
  readonly after: readonly number[];
}

/**
 * B2: the steps that follow, level by level, up to the first level where a step is due that is not executed inline: it is not
 * to wait for the others. None follow while something that is ready has no room: it comes first.
 *
 * @param first steps that are executed now, without items @returns at most `most` steps, each after all that it waits for
 */
export function inlineFollowers(
  state: MachineState,
  first: readonly number[],
  most: number,
): InlineFollower[] {
  const isCrowded = state.nextReady < state.ready.length || state.openFans.size > 0;
  if (isCrowded) return [];
  const members = new Set(first);
  const followers: InlineFollower[] = [];
  let last = first;
  while (last.length > 0) {
    const due = dueAfter(state, last, members);
    if (followers.length + due.length > most || !due.every((follower) => isPlain(state, follower))) break;
    followers.push(...due);
    last = due.map(({ step }) => step);
    for (const step of last) members.add(step);
  }
  return followers;
}

/** The steps whose time comes with the ends of some, when all of the batch have ended. */
function dueAfter(
  { plan, steps, successors, unmet }: MachineState,
  ended: readonly number[],
  members: ReadonlySet<number>,
): InlineFollower[] {
  const next = new Set(ended.flatMap((step) => successors[step] ?? []));
  return [...next].flatMap((step) => {
    const after = plan.steps[step]?.dependencies.filter((dependency) => members.has(dependency)) ?? [];
    return steps[step] === 'pending' && unmet[step] === after.length ? [{ step, after }] : [];
  });
}

/** Whether it is executed inline, once, and nothing about it is to be decided. */
function isPlain({ plan, good }: MachineState, { step, after }: InlineFollower): boolean {
  const { inline, decides, run_if, each, dependencies = [] } = plan.steps[step] ?? {};
  const isOnce = inline === true && decides !== true && run_if === undefined && each === undefined;
  return isOnce && (good[step] ?? 0) + after.length === dependencies.length;
}

/** What has ended, however, as far as the end of the run is concerned. */
const hasEnded: ReadonlySet<MachineStepState> = new Set([
  'succeeded',
  'failed',
  'unknown',
  'skipped',
  'reused',
]);

/** B12: whether the run has succeeded when some steps, none of them with items, have. */
export function areLast(state: MachineState, members: ReadonlySet<number>): boolean {
  const { phase, fans, successors, steps } = state;
  const isOver = (step: number): boolean => members.has(step) || hasEnded.has(steps[step] ?? 'pending');
  if (phase !== 'running' || [...members].some((step) => fans.has(step))) return false;
  // Few pass the first, which costs what the members' edges cost.
  return (
    [...members].every((step) => successors[step]?.every(isOver)) && steps.every((_, step) => isOver(step))
  );
}
