/**
 * A run as a workflow: the pure machine decides, activities act, this file connects them. It holds no values:
 * inputs are resolved and results stored where the activities run. When its history is long, the run goes on in a new
 * one, which no person, budget or clock that it waits for holds up.
 */
import {
  ActivityCancellationType,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
} from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import { type DrivenRun, driveRun } from '../core/run/drive.ts';
import { carryRun } from '../core/run/snapshot.ts';
import type {
  ControlSignal,
  RunPipelineInput,
  RunPipelineResult,
} from '../core/workflow-payloads/run-input.ts';
import { createRunControl } from './run-control.ts';
import { createWorkflowPorts, type WorkflowPorts } from './run-ports.ts';
import { announcePhase } from './search-attributes.ts';
import { createProgressTable } from './web-ui/progress-table.ts';

const { finishRun } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  cancellationType: ActivityCancellationType.ABANDON,
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

export async function runPipeline(input: RunPipelineInput): Promise<RunPipelineResult> {
  const deadlineMs = deadlineOf(input);
  const begun = beginRun(input);
  const { run } = begun;
  CancellationScope.current().cancelRequested.catch(() => run.send({ type: 'cancel_requested' }));
  const limit = limitTime(input, deadlineMs, run);
  await Promise.race([run.ended, begun.moved]);
  limit.cancel();
  await begun.work.recorded();
  // While ends were being written, somebody may have ended it.
  if (run.state.phase === 'running') return moveOn(input, begun, deadlineMs);
  const end = await run.ended;
  return CancellationScope.nonCancellable(() => closeRun(input, begun, end));
}

interface Begun {
  readonly run: DrivenRun;
  readonly work: WorkflowPorts;
  readonly control: () => ControlSignal;
  /** Resolves when the run is to go on in a new history. */
  readonly moved: Promise<void>;
  readonly show: () => void;
}

function beginRun(input: RunPipelineInput): Begun {
  const table = createProgressTable(input.run_url);
  const running = new CancellationScope();
  let run: DrivenRun | undefined;
  let move: () => void = () => undefined;
  const moved = new Promise<void>((resolve) => {
    move = resolve;
  });
  const control = createRunControl(input.carried?.control ?? input.control, (isPaused) => {
    announcePhase(input, isPaused ? 'paused' : 'running');
    run?.send({ type: isPaused ? 'paused' : 'resumed' });
  });
  const show = (): void => setCurrentDetails(table.toMarkdown((run as DrivenRun).state));
  const refresh = onceATurn(show);
  const work = createWorkflowPorts({
    input,
    running,
    table,
    refresh,
    control,
    moveOn: move,
    attach: (driven) => {
      run = driven;
    },
    run: () => run as DrivenRun,
  });
  // What was said between two histories came in as the handlers were set: the machine has not heard it.
  const from = { ...input.carried?.machine, isPaused: control().paused };
  const driven = driveRun(input.plan, work.ports, from);
  refresh();
  return { run: driven, work, control, moved, show };
}

function moveOn(
  input: RunPipelineInput,
  { run, work, control }: Begun,
  deadline_ms: number | null,
): Promise<never> {
  const carried = {
    machine: carryRun(run.state),
    deadline_ms,
    control: control(),
    ...work.waits.carry(),
    has_waited: work.hasWaited(),
  };
  return continueAsNew<typeof runPipeline>({ ...input, carried });
}

/** @throws what makes the workflow end as the run did */
async function closeRun(
  input: RunPipelineInput,
  { work, show }: Begun,
  { outcome, error }: Pick<RunPipelineResult, 'outcome' | 'error'>,
): Promise<RunPipelineResult> {
  const end = await finishRun({
    run_id: input.run_id,
    outcome,
    error,
    ...(work.hasWaited() ? { has_waited: true } : {}),
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
}

/** However many steps end in one activation, the table is written once. */
function onceATurn(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    void Promise.resolve().then(() => {
      isDue = false;
      work();
    });
  };
}

function deadlineOf({ carried, timeout_ms }: RunPipelineInput): number | null {
  if (carried !== undefined) return carried.deadline_ms;
  return timeout_ms === null ? null : Date.now() + timeout_ms;
}

/** Ends the run when its time is over. */
function limitTime(
  { timeout_ms }: RunPipelineInput,
  deadlineMs: number | null,
  run: DrivenRun,
): CancellationScope {
  const scope = new CancellationScope();
  if (deadlineMs !== null) {
    const error = { code: 'run_timeout', message: `the run did not end within ${timeout_ms} ms` };
    scope
      .run(() => sleep(Math.max(1, deadlineMs - Date.now())))
      .then(
        () => run.send({ type: 'timed_out', error }),
        () => undefined,
      );
  }
  return scope;
}
