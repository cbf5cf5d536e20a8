/**
 * A batch of short steps: inline units that are executed together. It has the units that are ready now, and the steps
 * that the machine would execute next if each of them succeeds. The batch spares the workflow a task for each; the
 * machine still receives one event per unit. ARCHITECTURE.md lists the invariants B1 to B14, each with its test: B1 and
 * B2 are kept here and in workflows/inline-batches.ts, B4 to B8 in use-cases/steps.
 */
import type { MachineState, MachineStepState } from './machine-state.ts';

/** B1: whether exactly these units of the run are in flight, and none waits. */
export function isAlone({ inFlight, waits }: MachineState, units: number): boolean {
  return inFlight === units && waits.size === 0;
}

/** A step that may begin as soon as some of its batch have succeeded. */
export interface InlineFollower {
  readonly step: number;
  /** Its dependencies in the batch. */
  readonly after: readonly number[];
}

/**
 * B2: the steps that follow, level by level, up to the first level with a step that is not inline, which must not wait
 * for the others. None follow while a ready unit has no room, because it comes first.
 *
 * @param first steps that are executed now, without items
 * @returns at most `most` steps, each after all its dependencies
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

/** The steps that become due with the ends of `ended`, once the whole batch has ended. */
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

/** Whether the step is inline, runs once, needs no decision, and has no part in a race. */
function isPlain({ plan, good }: MachineState, { step, after }: InlineFollower): boolean {
  const { inline, decides, run_if, race, is_callable_off, each, dependencies = [] } = plan.steps[step] ?? {};
  const hasRules = decides === true || run_if !== undefined || race !== undefined || is_callable_off === true;
  const isOnce = inline === true && !hasRules && each === undefined;
  return isOnce && (good[step] ?? 0) + after.length === dependencies.length;
}

/** States that count as ended for the end of the run. */
const hasEnded: ReadonlySet<MachineStepState> = new Set([
  'succeeded',
  'failed',
  'unknown',
  'skipped',
  'reused',
]);

/** B12: whether the run succeeds once these steps, none of them with items, succeed. */
export function areLast(state: MachineState, members: ReadonlySet<number>): boolean {
  const { phase, fans, successors, steps } = state;
  const isOver = (step: number): boolean => members.has(step) || hasEnded.has(steps[step] ?? 'pending');
  if (phase !== 'running' || [...members].some((step) => fans.has(step))) return false;
  // The first check is cheap, by the members' edges, and few batches pass it.
  return (
    [...members].every((step) => successors[step]?.every(isOver)) && steps.every((_, step) => isOver(step))
  );
}
