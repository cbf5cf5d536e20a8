/** The work of a run's units, from start to end: activity, ladder and waits. */

import type { Failure } from '@capstan/core/contracts/primitives';
import type { DrivenRun, RunPorts, Unit, UnitEnd } from '@capstan/core/run/drive';
import type { Wait } from '@capstan/core/run/machine-state';
import { hearsWake } from '@capstan/core/run/waits';
import { describeAwaited } from '@capstan/core/workflow-names';
import type { RunPipelineInput, RunPipelineResult } from '@capstan/core/workflow-payloads';
import { CancellationScope } from '@temporalio/workflow';
import { type CallOffs, createCallOffs } from './call-offs.ts';
import type { RunCourse } from './inline-batches.ts';
import type { ProgressRecorder } from './progress-recorder.ts';
import type { LocalTurns, RunControl } from './run-control.ts';
import { createStepEscalations } from './step-escalations.ts';
import { createStepExecutor, type StepExecutor, type StepExecutorDependencies } from './step-executor.ts';
import { createStepWaits, type StepWaits } from './waits.ts';
import type { RunProgress } from './web-ui.ts';

export interface UnitWorkDependencies {
  readonly input: RunPipelineInput;
  readonly run: DrivenRun;
  readonly control: RunControl;
  readonly progress: RunProgress;
  readonly recorder: ProgressRecorder;
  readonly inTurn: LocalTurns;
  /** Scope of all running and waiting units. */
  readonly running: CancellationScope;
}

export interface UnitWork
  extends Pick<
    RunPorts,
    'executeStep' | 'escalateStep' | 'resumeStep' | 'giveUpStep' | 'callOff' | 'listen' | 'cancelEscalations'
  > {
  readonly waits: StepWaits;
  /** Whether a unit has waited or escalated. */
  hasWaited(): boolean;
  /** The result, if the run was closed with its last steps; null: it was not. */
  closed(): RunPipelineResult | null;
}

export function createUnitWork(dependencies: UnitWorkDependencies): UnitWork {
  const { input, run, progress, recorder } = dependencies;
  const callOffs = createCallOffs(recorder);
  const course: RunCourse = { hasWaited: input.snapshot?.has_waited ?? false, closed: null };
  const waits = createWaits(dependencies);
  const escalations = createEscalations(dependencies, callOffs);
  const execute = createExecutor({ ...dependencies, callOffs }, course, escalations.begin);
  return {
    waits,
    hasWaited: () => course.hasWaited,
    closed: () => course.closed,
    executeStep: execute,
    escalateStep: (unit) => {
      progress.announce();
      return escalations.climb(unit);
    },
    resumeStep: (unit, wait) => {
      progress.announce();
      progress.remark(unit, null);
      return wait.ladder === true ? escalations.resume(unit, wait) : execute(unit, wait);
    },
    giveUpStep: (unit, wait, why) => {
      if (why !== undefined) callOffs.note(unit, why);
      waits.forget(unit);
      progress.announce();
      return wait === null || wait.ladder === true
        ? escalations.giveUp(unit, wait)
        : leave(dependencies, unit, why ?? leftBehind(run.state.phase === 'cancelling'));
    },
    callOff: callOffs.callOff,
    listen: (unit, wait) => {
      course.hasWaited = true;
      showWait(progress, unit, wait);
      progress.announce();
      waits.listen(unit, wait);
    },
    cancelEscalations: escalations.stop,
  };
}

function createWaits({ input, run, running }: UnitWorkDependencies): StepWaits {
  const indexOf = new Map(input.plan.steps.map(({ id }, index) => [id, index]));
  return createStepWaits({
    scope: running,
    snapshot: input.snapshot,
    hearsWake: (stepId, item) => hearsWake(run.state, { step: indexOf.get(stepId) ?? -1, item }),
    wake: ({ index: step, item }) => run.send({ type: 'step_woken', step, item }),
  });
}

function createEscalations(
  { input, run, progress, recorder, running }: UnitWorkDependencies,
  callOffs: CallOffs,
) {
  return createStepEscalations({
    input,
    recorder,
    climbing: new CancellationScope({ cancellable: true, parent: running }),
    within: callOffs.within,
    whyOf: callOffs.whyOf,
    isCancelled: () => run.state.phase === 'cancelling',
    remark: progress.remark,
    ended: progress.end,
  });
}

function createExecutor(
  {
    input,
    run,
    control,
    progress,
    recorder,
    running,
    inTurn,
    callOffs,
  }: UnitWorkDependencies & { readonly callOffs: CallOffs },
  course: RunCourse,
  climb: StepExecutorDependencies['escalated'],
): StepExecutor {
  return createStepExecutor({
    input,
    run,
    course,
    recorder,
    inTurn,
    inScope: (work, unit) =>
      recorder.afterRecords(() =>
        unit === undefined ? running.run(work) : callOffs.within(unit, running, work),
      ),
    whyOf: callOffs.whyOf,
    control: control.current,
    done: progress.note,
    failed: (unit, { code, message }) => progress.end(unit, `${code}: ${message}`),
    escalated: (unit, place, error) => {
      course.hasWaited = true;
      climb(unit, place, error);
    },
  });
}

/** The cause of a ladder's wait was already noted where the ladder ended. */
function showWait(progress: RunProgress, unit: Unit, wait: Wait): void {
  if (wait.ladder === true) progress.refresh();
  else progress.remark(unit, describeWait(wait));
}

function describeWait(wait: Wait): string {
  const { until } = wait;
  return `for ${describeAwaited(wait)}${until === null ? '' : ` until ${new Date(until).toISOString()}`}`;
}

function leftBehind(isCancelled: boolean): Failure {
  const message = isCancelled ? 'the step was cancelled' : 'given up, because another part has failed';
  return { code: 'run_cancelled', message };
}

async function leave(
  { progress, recorder }: UnitWorkDependencies,
  unit: Unit,
  error: Failure,
): Promise<UnitEnd> {
  progress.remark(unit, null);
  await recorder.record([{ step_id: unit.step.id, item: unit.item, state: 'cancelled', error }]);
  return { state: 'cancelled', error };
}
