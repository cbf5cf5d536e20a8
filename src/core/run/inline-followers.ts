/**
 * Inline steps that follow one another: those that the machine would execute next, each alone, as long as each of them
 * succeeds. Executed together they spare the workflow a turn for each; the machine is told of them one by one all the
 * same.
 */
import type { MachineState } from './machine-state.ts';

/** Whether nothing of the run is under way, or could be, but the one unit that is in flight. */
export function isAlone(state: MachineState): boolean {
  const { inFlight, deciding, undecided, ready, nextReady, openFans, waits } = state;
  return (
    inFlight === 1 &&
    deciding + undecided.length + openFans.size + waits.size === 0 &&
    ready.length === nextReady
  );
}

/** @param first step that is executed now, alone @returns at most `most` steps, in order */
export function inlineFollowers(state: MachineState, first: number, most: number): number[] {
  const line = [first];
  while (line.length <= most) {
    const next = onlyNext(state, line);
    if (next === null) break;
    line.push(next);
  }
  return line.slice(1);
}

/** The one step whose time comes with the end of the last of the line, when nothing about it is to be decided. */
function onlyNext({ plan, steps, successors, unmet, good }: MachineState, line: readonly number[]) {
  const aheadOf = (step: number): number =>
    plan.steps[step]?.dependencies.filter((dependency) => line.includes(dependency)).length ?? 0;
  const last = line.at(-1) ?? -1;
  const due = (successors[last] ?? []).filter(
    (step) => steps[step] === 'pending' && unmet[step] === aheadOf(step),
  );
  const [next] = due;
  if (next === undefined || due.length > 1) return null;
  const { inline, decides, run_if, each, dependencies = [] } = plan.steps[next] ?? {};
  const isPlain = inline === true && decides !== true && run_if === undefined && each === undefined;
  return isPlain && (good[next] ?? 0) + aheadOf(next) === dependencies.length ? next : null;
}
