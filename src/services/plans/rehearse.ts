/**
 * Which steps happen, by the machine of a real run in which nobody is called. Three runs of it are made: one in which
 * everything happens that may, one in which nothing fails and every condition that is not known yet holds, and one in
 * which none of them does. What happens in the first is counted as the worst, in the second as usual, in the third for
 * sure; each is part of the one before.
 */
import { driveRun, type RunPorts } from '../../core/run/drive.ts';
import type { StepVerdict } from '../../core/run/machine.ts';
import type { PlannedStep, RunPlan } from '../../core/run/plan.ts';

/** What a step's `when` will say. */
export type Condition = 'holds' | 'fails' | 'unknown';

export interface Rehearsal {
  /** By index. */
  readonly may: readonly boolean[];
  readonly usual: readonly boolean[];
  readonly sure: readonly boolean[];
}

/**
 * @param conditionOf asked once per step with a condition whose time has come; by then it is certain of each step that
 * it depends on whether it is skipped
 */
export async function rehearseRun(
  plan: RunPlan,
  conditionOf: (index: number, isSkipped: (index: number) => boolean) => Condition,
): Promise<Rehearsal> {
  const { steps } = plan;
  const conditions = new Map<number, Condition>();
  /** One of those that a handler waits for must fail and let the run go on. */
  const mayBegin = (step: PlannedStep, isSkipped: (index: number) => boolean): boolean =>
    !isHandler(step) || step.dependencies.some((at) => steps[at]?.continues === true && !isSkipped(at));

  const may = await driveOnce(steps.map(forgetItems).map(handleAnything), (index, isSkipped) => {
    if (!mayBegin(steps[index] as PlannedStep, isSkipped)) return false;
    const condition = conditionOf(index, isSkipped);
    conditions.set(index, condition);
    return condition !== 'fails';
  });
  const certain = steps.map(forgetItems);
  const usual = await driveOnce(certain, (index) => conditions.get(index) !== 'fails');
  const sure = await driveOnce(certain, (index) => conditions.get(index) === 'holds');
  return { may, usual, sure };
}

/** Items are counted elsewhere: all of them or none happen. */
function forgetItems({ each: _, ...step }: PlannedStep): PlannedStep {
  return step;
}

/** Whether the step is there for failures alone. */
function isHandler({ run_if, dependencies }: PlannedStep): boolean {
  return run_if === 'any_failed' && dependencies.length > 0;
}

function handleAnything(step: PlannedStep): PlannedStep {
  return isHandler(step) ? { ...step, run_if: 'all_done', decides: true } : step;
}

function neverAsked(): never {
  throw new RangeError('a rehearsal never waits, fails or escalates');
}

async function driveOnce(
  steps: readonly PlannedStep[],
  happens: (index: number, isSkipped: (index: number) => boolean) => boolean,
): Promise<readonly boolean[]> {
  const indexOf = new Map(steps.map(({ id }, index) => [id, index]));
  const { run, begin } = driveRun({ steps, max_in_flight: steps.length });
  const isSkipped = (index: number): boolean => run.state.steps[index] === 'skipped';
  let fault: { readonly error: unknown } | null = null;
  const decideOne = ({ id }: PlannedStep): StepVerdict => {
    try {
      return { type: happens(indexOf.get(id) ?? -1, isSkipped) ? 'go' : 'skip' };
    } catch (error) {
      fault ??= { error }; // no port ever rejects
      return { type: 'skip' };
    }
  };
  const ports: RunPorts = {
    decide: async (asked) => asked.map(decideOne),
    executeStep: async () => ({ state: 'succeeded' }),
    escalateStep: neverAsked,
    resumeStep: neverAsked,
    giveUpStep: neverAsked,
    listen: neverAsked,
    cancelRunning: neverAsked,
    cancelEscalations: neverAsked,
    continueAsNew: neverAsked,
    record: () => undefined,
    historyPressure: () => 'none',
  };
  begin(ports);
  await run.ended;
  if (fault !== null) throw (fault as { error: unknown }).error;
  return run.state.steps.map((step) => step === 'succeeded');
}
