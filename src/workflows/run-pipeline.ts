/**
 * A run as a workflow: the pure machine decides, activities act, this file connects them. It holds no values:
 * inputs are resolved and results stored where the activities run.
 */
import {
  ActivityCancellationType,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { type DrivenRun, driveRun } from '../core/run/drive.ts';
import type { RunState } from '../core/run/machine.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import { createProgressTable } from '../core/run/progress-table.ts';
import type { RunPipelineInput, RunPipelineResult } from '../core/run/workflow-input.ts';
import { createStepEscalations, type StepEscalations } from './escalate-step.ts';
import { createStepExecutor } from './execute-step.ts';
import { createReviewWaits } from './review-waits.ts';
import { announcePhase, announceWaiting } from './search-attributes.ts';

const { finishRun } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  cancellationType: ActivityCancellationType.ABANDON,
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

export async function runPipeline(input: RunPipelineInput): Promise<RunPipelineResult> {
  const begun = beginRun(input);
  const { run } = begun;
  CancellationScope.current().cancelRequested.catch(() => run.send({ type: 'cancel_requested' }));
  const limit = limitTime(input, run);
  const { outcome, error } = await run.ended;
  limit.cancel();
  return CancellationScope.nonCancellable(() => closeRun(input, begun, { outcome, error }));
}

interface BegunRun {
  readonly run: DrivenRun;
  readonly escalations: StepEscalations;
  readonly show: () => void;
}

const beginRun = (input: RunPipelineInput): BegunRun => {
  const table = createProgressTable(input.run_url);
  const running = new CancellationScope();
  const show = (): void => setCurrentDetails(table.toMarkdown(run.state));
  const refresh = onceATurn(show);
  const indexOf = new Map(input.plan.steps.map(({ id }, index) => [id, index]));
  const at = ({ id }: PlannedStep): number => indexOf.get(id) ?? 0;
  const isAwaiting = (): boolean => run.state.inReview > 0;
  const escalations = createStepEscalations({
    input,
    waits: createReviewWaits(),
    climbing: beginIn(running, () => new CancellationScope()),
    isCancelled: () => run.state.phase === 'cancelling',
    remark: (step, text) => {
      table.remark(at(step), text);
      refresh();
    },
    announce: onChange(isAwaiting, (is) => announceWaiting(input, is)),
  });
  const executeStep = createStepExecutor(input, {
    done: (step, note) => {
      table.note(at(step), note);
      refresh();
    },
    escalated: escalations.begin,
  });
  const ports = { ...escalations, executeStep, cancelRunning: () => running.cancel() };
  const run = beginIn(running, () => driveRun(input.plan, ports));
  refresh();
  return { run, escalations, show };
};

/** @throws what makes the workflow end as the run did */
const closeRun = async (
  input: RunPipelineInput,
  { run, escalations, show }: BegunRun,
  { outcome, error }: Pick<RunPipelineResult, 'outcome' | 'error'>,
): Promise<RunPipelineResult> => {
  const skipped = outcome === 'succeeded' ? skippedIds(run.state) : [];
  const end = await finishRun({
    ...{ run_id: input.run_id, outcome, error },
    ...(skipped.length > 0 ? { skipped } : {}),
    ...(escalations.hasAny() ? { has_escalated: true } : {}),
  });
  show();
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
};

/** What a person's decision to skip a step has left out. */
const skippedIds = ({ plan, steps }: RunState): string[] =>
  plan.steps.flatMap(({ id }, index) => (steps[index] === 'skipped' ? [id] : []));

/** Calls `tell` when what is read, false at first, has changed since the last time. */
const onChange = (read: () => boolean, tell: (value: boolean) => void): (() => void) => {
  let last = false;
  return () => {
    const value = read();
    if (value === last) return;
    last = value;
    tell(value);
  };
};

/** However many steps end in one activation, the table is written once. */
const onceATurn = (work: () => void): (() => void) => {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    void Promise.resolve().then(() => {
      isDue = false;
      work();
    });
  };
};

/** What `begin` starts now, and all that follows from it, is cancelled with the scope. */
const beginIn = <Begun>(scope: CancellationScope, begin: () => Begun): Begun => {
  let begun: Begun | undefined;
  void scope.run(async () => {
    begun = begin();
  });
  return begun as Begun;
};

/** Ends the run when its time is over. */
const limitTime = ({ timeout_ms }: RunPipelineInput, run: DrivenRun): CancellationScope => {
  const scope = new CancellationScope();
  if (timeout_ms !== null) {
    const error = { code: 'run_timeout', message: `the run did not end within ${timeout_ms} ms` };
    scope
      .run(() => sleep(timeout_ms))
      .then(
        () => run.send({ type: 'timed_out', error }),
        () => undefined,
      );
  }
  return scope;
};
