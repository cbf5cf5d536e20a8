/** What is said to the workflow of a run, each time from its row as it is then: begin, end, how you stand. All may be repeated. */
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { RunRef } from '../../core/workflow-payloads/workflow-ids.ts';
import type { Db } from '../../db/connect.ts';
import { lockRun } from '../../db/run/run-control.ts';
import {
  type DeliveryRow,
  markCancelDelivered,
  markControlDelivered,
  readDelivery,
} from '../../db/run/run-delivery.ts';
import { closeLostRun, type LostRun } from './close-lost-run.ts';
import { controlOf, createInputReader, type RunToStart, type StartSettings } from './run-start-input.ts';
import { createStartMarks } from './start-marks.ts';

export interface RunMessages {
  start(runId: string): Promise<void>;
  /** Starts a run whose row is known. */
  startKnown(run: RunToStart): Promise<void>;
  cancel(runId: string): Promise<void>;
  control(runId: string): Promise<void>;
}

export interface MessageDependencies extends StartSettings {
  readonly db: Db;
  readonly workflows: RunWorkflows;
}

export function createRunMessages({ db, workflows, ...settings }: MessageDependencies): RunMessages {
  const toInput = createInputReader({ workflows, ...settings });
  const markStart = createStartMarks(db);
  const messages: RunMessages = {
    start: async (runId) => {
      const row = await readOpen(db, runId);
      if (row?.start_delivered_at === null && !row.waits_its_turn) await messages.startKnown(row);
    },
    // What was asked of it since its row was read, or written, the mark says.
    startKnown: async (run) => {
      const { run_id: runId, control_version: version } = run;
      await workflows.start(await toInput(run), run.priority, version === 0 ? null : controlOf(run));
      const { is_cancelled, is_terminated, is_changed } = await markStart({ run_id: runId, version });
      if (is_terminated) await workflows.terminate(run, cancelledAsItStarted);
      else if (is_cancelled) await messages.cancel(runId);
      else if (is_changed) await messages.control(runId);
    },
    cancel: async (runId) => {
      const row = await readOpen(db, runId);
      if (row?.start_delivered_at === null) return closeUnstarted(db, row.project_id, runId);
      if (row === undefined) return;
      await endWorkflow(db, workflows, row);
      await markCancelDelivered(db, runId, row.cancel_mode ?? 'graceful');
    },
    control: async (runId) => {
      const row = await readOpen(db, runId);
      if (row?.start_delivered_at === null) return messages.start(runId);
      if (row === undefined || row.control_delivered >= row.control_version) return;
      await workflows.signalControl(row, controlOf(row));
      await markControlDelivered(db, runId, row.control_version);
    },
  };
  return messages;
}

const cancelledAsItStarted = 'the run was cancelled as it started';

async function readOpen(db: Db, runId: string): Promise<DeliveryRow | undefined> {
  const row = await readDelivery(db, runId);
  return row?.finished_at === null ? row : undefined;
}

/** Ends a cancelled run that has no workflow to wait for. */
export function closeUnstarted(db: Db, project_id: string, run_id: string): Promise<void> {
  return db.transaction(async (trx) => {
    const row = await lockRun(trx, { project_id, run_id });
    if (row?.state !== 'cancelling' || row.start_delivered_at !== null) return;
    const waits = row.concurrency_key !== null && row.admitted_at === null;
    if (!waits && row.cancel_mode !== 'terminate') return; // its start may be under way
    await close(trx, { ...row, cancel_mode: 'graceful' }, 'cancelled before it had started');
  });
}

async function endWorkflow(db: Db, workflows: RunWorkflows, row: DeliveryRow): Promise<void> {
  if (row.cancel_mode === 'terminate') {
    await workflows.terminate(row, 'the run was cancelled');
    await close(db, row, 'cancelled; its workflow was terminated');
  } else if ((await workflows.cancel(row)) === 'gone') {
    // Temporal has forgotten the workflow, or ended it itself: nobody else will close the run.
    await close(db, row, 'cancelled; its workflow had ended without closing it');
  }
}

function close(
  db: Db,
  { cancel_mode, ...run }: LostRun & Pick<DeliveryRow, 'cancel_mode'>,
  message: string,
): Promise<void> {
  const error = { code: 'run_cancelled', message };
  return closeLostRun(db, run, { state: 'cancelled', error, mode: cancel_mode ?? 'graceful' });
}

export type UnmarkedRow = RunRef;

/** Ends the workflow of a run whose server may have died between its start and the mark of it. */
export async function endUnmarked(
  { db, workflows }: Pick<MessageDependencies, 'db' | 'workflows'>,
  run: UnmarkedRow,
): Promise<void> {
  await workflows.terminate(run, cancelledAsItStarted);
  await markCancelDelivered(db, run.run_id, 'terminate');
}
