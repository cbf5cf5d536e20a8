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
import { createProgressTable } from '../core/run/progress-table.ts';
import type { RunPipelineInput, RunPipelineResult } from '../core/run/workflow-input.ts';
import { createStepExecutor } from './execute-step.ts';
import { announcePhase } from './search-attributes.ts';

const { finishRun } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  cancellationType: ActivityCancellationType.ABANDON,
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

export async function runPipeline(input: RunPipelineInput): Promise<RunPipelineResult> {
  const table = createProgressTable(input.run_url);
  const running = new CancellationScope();
  const refresh = onceATurn(() => setCurrentDetails(table.toMarkdown(run.state)));
  const executeStep = createStepExecutor(input, (step, note) => {
    table.note(step, note);
    refresh();
  });
  const ports = { executeStep, cancelRunning: () => running.cancel() };
  const run = beginIn(running, () => driveRun(input.plan, ports));
  refresh();
  CancellationScope.current().cancelRequested.catch(() => run.send({ type: 'cancel_requested' }));
  const limit = limitTime(input, run);

  const { outcome, error } = await run.ended;
  limit.cancel();
  return CancellationScope.nonCancellable(async () => {
    const end = await finishRun({ run_id: input.run_id, outcome, error });
    setCurrentDetails(table.toMarkdown(run.state));
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
  });
}

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
