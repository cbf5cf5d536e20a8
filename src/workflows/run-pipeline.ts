/**
 * A run as a workflow: the pure machine decides, activities act, and this file connects them. It holds no values: the
 * activities resolve inputs and store results. When its history is long, the run continues as new (M6 of the machine),
 * also while it waits for a review, a budget or a timer.
 */

import { findRunFault, readRested } from '@capstan/core/received/workflow-messages';
import {
  type AnswerVerdict,
  type DrivenRun,
  driveRun,
  type MachineEnd,
  type RunPorts,
  type Unit,
} from '@capstan/core/run/drive';
import type { StepVerdict } from '@capstan/core/run/machine';
import type { HistoryPressure } from '@capstan/core/run/machine-state';
import type { PlannedStep } from '@capstan/core/run/plan';
import type { RoundVerdict } from '@capstan/core/run/repeat/rounds';
import { takeSnapshot } from '@capstan/core/run/snapshot';
import {
  limitTime,
  outOfRunTime,
  type TimeLeft,
  type TimeLimit,
  type TimePorts,
  timeOf,
} from '@capstan/core/time-limit';
import { listUnits, summarizeJudgement, toSummary } from '@capstan/core/workflow-names';
import type { RunPipelineInput, RunPipelineResult } from '@capstan/core/workflow-payloads';
import {
  ActivityCancellationType,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  proxyLocalActivities,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { createProgressRecorder, type ProgressRecorder } from './progress-recorder.ts';
import { createRests, type Rests } from './rests.ts';
import {
  createLocalTurns,
  createRunControl,
  handleSignal,
  type LocalTurns,
  type RunControl,
  requireInput,
} from './run-control.ts';
import { createUnitWork, type UnitWork } from './unit-work.ts';
import { announcePhase, createRunProgress, type RunProgress } from './web-ui.ts';

const deciding = {
  startToCloseTimeout: '60 seconds',
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
} as const;

/** Evaluates whether steps run, and how often, in the activity, which has the values. */
function decideActivity(stepIds: readonly string[]): Activities['decideSteps'] {
  return proxyLocalActivities<Activities>({
    ...deciding,
    summary: toSummary(`whether or how often: ${listUnits(stepIds.map((step_id) => ({ step_id })))}`),
  }).decideSteps;
}

const decidedAtOnce = 200;

/** Also runs during cancellation, after which no more steps are decided. */
function decideAll(runId: string, steps: readonly PlannedStep[]): Promise<readonly StepVerdict[]> {
  return CancellationScope.nonCancellable(async () => {
    const verdicts: StepVerdict[] = [];
    while (verdicts.length < steps.length) {
      const next = steps.slice(verdicts.length, verdicts.length + decidedAtOnce);
      const step_ids = next.map(({ id }) => id);
      const decide = decideActivity(step_ids);
      verdicts.push(...(await decide({ run_id: runId, step_ids }).catch(undecided(step_ids))));
    }
    return verdicts;
  });
}

function undecided(stepIds: readonly string[]) {
  return (error: unknown): StepVerdict[] => {
    if (!(error instanceof TemporalFailure)) throw error;
    const failure = { code: 'internal', message: `not decided: ${error.cause?.message ?? error.message}` };
    return stepIds.map(() => ({ type: 'fail', error: failure }));
  };
}

/** Judges a round in the activity, which has its output. Also runs during cancellation. */
function judgeRound(run_id: string, unit: Unit): Promise<RoundVerdict> {
  const { judgeRound: judge } = proxyLocalActivities<Activities>({
    ...deciding,
    summary: summarizeJudgement(unit),
  });
  return CancellationScope.nonCancellable(() =>
    judge({ run_id, step_id: unit.step.id, item: unit.item }).catch((error: unknown): RoundVerdict => {
      if (!(error instanceof TemporalFailure)) throw error;
      const message = `round ${unit.item} was not judged: ${error.cause?.message ?? error.message}`;
      return { type: 'fail', error: { code: 'internal', message } };
    }),
  );
}

/** The same of the answer of an item: one that cannot be judged does not count. */
function judgeItem(run_id: string, { step, item }: Unit): Promise<AnswerVerdict> {
  const key = { step_id: step.id, item };
  const { judgeAnswer } = proxyLocalActivities<Activities>({
    ...deciding,
    summary: toSummary(`whether it counts: ${listUnits([key])}`),
  });
  return CancellationScope.nonCancellable(() =>
    judgeAnswer({ run_id, ...key }).catch((error: unknown): AnswerVerdict => {
      if (!(error instanceof TemporalFailure)) throw error;
      const message = `not judged: ${error.cause?.message ?? error.message}`;
      return { counts: false, error: { code: 'internal', message } };
    }),
  );
}

/** Retried without limit; the activity leaves out an output or error that cannot be stored. */
const closing = {
  startToCloseTimeout: '60 seconds',
  cancellationType: ActivityCancellationType.ABANDON,
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
} as const;

export async function runPipeline(input: RunPipelineInput): Promise<RunPipelineResult> {
  requireInput(input, findRunFault);
  const time = timeLeftOf(input);
  const begun = beginRun(input);
  const { run, recorder } = begun;
  CancellationScope.current().cancelRequested.catch(() => run.send({ type: 'cancel_requested' }));
  const limit = limitRun(input, time, begun);
  await Promise.race([run.ended, begun.isLong]);
  const left = limit.left();
  limit.stop();
  await recorder.afterRecords(async () => undefined);
  if (run.state.phase === 'running') await begun.rests.sent();
  // A command may have ended the run while ends were being stored.
  if (run.state.phase === 'running') return goOn(input, begun, left);
  const end = await run.ended;
  return CancellationScope.nonCancellable(() => closeRun(input, begun, end));
}

interface BegunWorkflow {
  readonly run: DrivenRun;
  readonly control: RunControl;
  readonly progress: RunProgress;
  readonly recorder: ProgressRecorder;
  readonly rests: Rests;
  readonly work: UnitWork;
  /** Resolves when the run is to continue as new. */
  readonly isLong: Promise<void>;
}

function beginRun(input: RunPipelineInput): BegunWorkflow {
  const control = createRunControl(input);
  const from = { ...input.snapshot?.machine, isPaused: control.current().paused };
  const { run, begin } = driveRun(input.plan, from);
  control.follow((isPaused) => run.send({ type: isPaused ? 'paused' : 'resumed' }));
  const progress = createRunProgress(input, run);
  const inTurn = createLocalTurns();
  const recorder = createProgressRecorder(input, inTurn);
  const rests = createRests(input, run);
  const running = new CancellationScope();
  const work = createUnitWork({ input, run, control, progress, recorder, inTurn, running });
  const isLong = new Promise<void>((resolve) => {
    begin(createPorts(input, { work, recorder, rests, inTurn, running, continueAsNew: resolve }));
  });
  followChildren(input, run);
  progress.refresh();
  return { run, control, progress, recorder, rests, work, isLong };
}

/** Follows the rests of child runs. A signal may have come before the run begins. */
function followChildren({ plan }: RunPipelineInput, run: DrivenRun): void {
  const indexOf = new Map(plan.steps.map(({ id }, index) => [id, index]));
  handleSignal('rested', readRested, ({ step_id, item, run_id: child, rests }) => {
    const step = indexOf.get(step_id);
    if (step !== undefined) run.send({ type: 'child_rest', step, item, child, rests });
  });
}

const softEvents = 4_096;
const softBytes = 4 * 1_048_576;

/**
 * The pressure from this workflow's history: past the first limit it continues as new as soon as possible, past the
 * second it must.
 */
function createHistoryPressure({ history_events = softEvents }: RunPipelineInput) {
  return (): HistoryPressure => {
    const { historyLength, historySize } = workflowInfo();
    const times = Math.max(historyLength / history_events, historySize / softBytes);
    return times < 1 ? 'none' : times < 2 ? 'soft' : 'hard';
  };
}

interface PortDependencies extends Pick<BegunWorkflow, 'work' | 'recorder' | 'rests'> {
  readonly inTurn: LocalTurns;
  readonly running: CancellationScope;
  readonly continueAsNew: () => void;
}

function createPorts(
  input: RunPipelineInput,
  { work, recorder, rests, inTurn, running, continueAsNew }: PortDependencies,
): RunPorts {
  return {
    ...work,
    decide: (steps) => recorder.afterRecords(() => inTurn(() => decideAll(input.run_id, steps))),
    judgeRound: (unit) => recorder.afterRecords(() => inTurn(() => judgeRound(input.run_id, unit))),
    record: (changes) => {
      void recorder.record(
        changes.map(({ step, ...change }) => ({ step_id: input.plan.steps[step]?.id ?? '', ...change })),
      );
    },
    judgeAnswer: (unit) => inTurn(() => judgeItem(input.run_id, unit)),
    cancelRunning: () => running.cancel(),
    restChanged: rests.changed,
    historyPressure: createHistoryPressure(input),
    continueAsNew,
  };
}

function goOn(
  input: RunPipelineInput,
  { run, work, control }: BegunWorkflow,
  left: TimeLeft,
): Promise<never> {
  const snapshot = {
    machine: takeSnapshot(run.state),
    ...left,
    control: control.current(),
    ...work.waits.snapshot(),
    has_waited: work.hasWaited(),
  };
  return continueAsNew<typeof runPipeline>({ ...input, snapshot });
}

/** @throws a failure that ends the workflow as the run ended */
async function closeRun(
  input: RunPipelineInput,
  { work, progress }: BegunWorkflow,
  { outcome, error }: MachineEnd,
): Promise<RunPipelineResult> {
  const { finishRun } = proxyLocalActivities<Activities>({ ...closing, summary: `the run ends: ${outcome}` });
  // A run that its last steps have closed keeps that end, whatever was signalled meanwhile.
  const end =
    work.closed() ??
    (await finishRun({
      run_id: input.run_id,
      outcome,
      error,
      ...(work.hasWaited() ? { has_waited: true } : {}),
    }));
  progress.show(end.outcome);
  announcePhase(input, end.outcome);
  switch (end.outcome) {
    case 'succeeded':
      return end;
    case 'cancelled':
      throw new CancelledFailure('the run was cancelled');
    case 'failed':
      throw ApplicationFailure.create({
        type: end.error?.code ?? 'step_failed',
        message: end.error?.message ?? 'a step failed',
        nonRetryable: true,
      });
  }
}

function timeLeftOf({ snapshot, timeout_ms }: RunPipelineInput): TimeLeft {
  return snapshot ?? timeOf(timeout_ms, Date.now());
}

/** Stops the run when its time is over; the time does not pass in a pause. */
function limitRun(
  { timeout_ms }: RunPipelineInput,
  from: TimeLeft,
  { run, control }: BegunWorkflow,
): TimeLimit {
  const limit = limitTime(timerPorts, {
    from,
    isPaused: control.current().paused,
    over: () => run.send({ type: 'timed_out', error: outOfRunTime(timeout_ms) }),
  });
  control.follow((isPaused) => (isPaused ? limit.pause() : limit.resume()));
  return limit;
}

const timerPorts: TimePorts = {
  nowMs: () => Date.now(),
  arm: (ms, fire) => {
    const scope = new CancellationScope();
    scope.run(() => sleep(ms, { summary: 'the time limit of the run' })).then(fire, () => undefined);
    return () => scope.cancel();
  },
};
