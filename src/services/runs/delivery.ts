/**
 * Brings what the rows of runs say to Temporal: starts, with the workflow's input, cancels, and what people ask of
 * runs under way. The process that took a request delivers at once; maintenance repeats it for what a crash, or
 * Temporal's absence, left undone.
 */

import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import { parseDuration } from '../../core/duration.ts';
import { listDispatchReasons } from '../../core/run/dispatch.ts';
import { planRun } from '../../core/run/plan.ts';
import type { RunRef } from '../../core/workflow-names.ts';
import type { ControlSignal, RunPipelineInput } from '../../core/workflow-payloads.ts';
import type { Db } from '../../db/connect.ts';
import { lockRun } from '../../db/run/run-control.ts';
import {
  type DeliveryRow,
  listEndedUnstarted,
  listStartedByOthers,
  listUndeliveredCancels,
  listUndeliveredControls,
  listUndeliveredStarts,
  markCancelDelivered,
  markControlDelivered,
  markStartsDelivered,
  readDelivery,
  type StartedRow,
  type StartMark,
} from '../../db/run/run-delivery.ts';
import { createDeliveries, type Deliveries, overdueMs } from '../delivery/deliveries.ts';
import { closeLostRun, type LostRun } from './closing.ts';

const momentMs = 50;

/** @returns what was asked of the run since its row was read */
type MarkStart = (mark: StartMark) => Promise<StartedRow>;

const nothing: StartedRow = { is_cancelled: false, is_terminated: false, is_changed: false };

/**
 * Marks starts as delivered, all of a moment by one statement: nobody waits for a mark, and right after a start the run
 * itself has better use for the machine.
 */
function createStartMarks(db: Db): MarkStart {
  let due: StartMark[] = [];
  let batch: Promise<ReadonlyMap<string, StartedRow>> | null = null;

  const write = async (): Promise<ReadonlyMap<string, StartedRow>> => {
    await new Promise((resolve) => setTimeout(resolve, momentMs));
    const marks = due;
    due = [];
    batch = null;
    const rows = await markStartsDelivered(db, marks);
    return new Map(rows.map((row) => [row.run_id, row]));
  };

  return async (mark) => {
    due.push(mark);
    batch ??= write();
    return (await batch).get(mark.run_id) ?? nothing;
  };
}

/** What the start of a run takes from its row. */
export type RunToStart = Omit<
  DeliveryRow,
  | 'start_delivered_at'
  | 'cancel_requested_at'
  | 'cancel_mode'
  | 'finished_at'
  | 'control_delivered'
  | 'waits_its_turn'
>;

interface StartSettings {
  readonly workflows: Pick<RunWorkflows, 'hasSearchAttributes'>;
  readonly heartbeatTimeoutMs: number;
  /** The version of the runs that are started from now on. */
  readonly engineVersion: number;
  /** Events after which a run continues as new. */
  readonly historyEvents: number;
  /** Where a person sees a run. */
  readonly urlOf: (runId: string) => string;
}

function controlOf({
  control_version: version,
  state,
  budget_version,
}: Pick<RunToStart, 'control_version' | 'state' | 'budget_version'>): ControlSignal {
  return { version, paused: state === 'paused', budget_version };
}

function createInputReader(settings: StartSettings): (run: RunToStart) => Promise<RunPipelineInput> {
  const { workflows, heartbeatTimeoutMs, engineVersion, historyEvents, urlOf } = settings;
  return async ({ definition, reused, dispatch, ...row }: RunToStart): Promise<RunPipelineInput> => ({
    engine_version: engineVersion,
    run_id: row.run_id,
    project_id: row.project_id,
    pipeline: row.pipeline,
    version: row.version,
    plan: planRun(definition, { reused, dispatch }),
    timeout_ms: definition.timeout === undefined ? null : parseDuration(definition.timeout),
    heartbeat_timeout_ms: heartbeatTimeoutMs,
    has_search_attributes: await workflows.hasSearchAttributes(),
    run_url: urlOf(row.run_id),
    dispatch_reasons: listDispatchReasons(definition, dispatch),
    history_events: historyEvents,
    ...(row.control_version === 0 ? {} : { control: controlOf(row) }),
  });
}

// What is said to the workflow of a run, each time from its row as it is then: begin, end, how you stand. All may
// be repeated.

interface RunMessages {
  start(runId: string): Promise<void>;
  /** Starts a run whose row is known. */
  startKnown(run: RunToStart): Promise<void>;
  cancel(runId: string): Promise<void>;
  control(runId: string): Promise<void>;
}

interface MessageDependencies extends StartSettings {
  readonly db: Db;
  readonly workflows: RunWorkflows;
}

function createRunMessages({ db, workflows, ...settings }: MessageDependencies): RunMessages {
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
function closeUnstarted(db: Db, project_id: string, run_id: string): Promise<void> {
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

/** Ends the workflow of a run whose server may have died between its start and the mark of it. */
async function endUnmarked(
  { db, workflows }: Pick<MessageDependencies, 'db' | 'workflows'>,
  run: RunRef,
): Promise<void> {
  await workflows.terminate(run, cancelledAsItStarted);
  await markCancelDelivered(db, run.run_id, 'terminate');
}

export interface RunDelivery {
  /** Deliver in the background; a failure is left to maintenance. */
  startSoon(runId: string): void;
  /** Likewise, one that was written just now: its row is not read. */
  startNew(run: RunToStart): void;
  cancelSoon(runId: string): void;
  controlSoon(runId: string): void;
  /** Ends a cancelled run that has no workflow to wait for. */
  closeUnstarted(projectId: string, runId: string): Promise<void>;
  /** @returns how many starts, cancels and controls it made up for */
  deliverOverdue(): Promise<number>;
  /** Starts runs that steps and schedules have asked for. */
  startOthers(): Promise<DeliveryCount>;
  deliverCancels(): Promise<DeliveryCount>;
  deliverControls(): Promise<DeliveryCount>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

export interface DeliveryCount {
  readonly due: number;
  readonly delivered: number;
}

/** A start that is under way has ended by then. */
const startOverMs = 60_000;
const batch = 200;

interface Row {
  readonly run_id: string;
}

function toRows(runIds: readonly string[]): readonly Row[] {
  return runIds.map((run_id) => ({ run_id }));
}

interface RunDeliveryDependencies extends MessageDependencies {
  readonly logger: Logger;
}

export function createRunDelivery(dependencies: RunDeliveryDependencies): RunDelivery {
  const { db } = dependencies;
  const messages = createRunMessages(dependencies);
  const { starts, cancels, controls, ends } = openDeliveries(dependencies, messages);

  const deliverCancels = async () => deliverEach(cancels, await listUndeliveredCancels(db, batch));
  const deliverControls = async () => deliverEach(controls, await listUndeliveredControls(db, batch));

  return {
    startSoon: (run_id) => void starts.soon({ run_id }),
    startNew: (run) => void starts.soon({ run_id: run.run_id }, () => messages.startKnown(run)),
    cancelSoon: (run_id) => void cancels.soon({ run_id }),
    controlSoon: (run_id) => void controls.soon({ run_id }),
    closeUnstarted: (projectId, runId) => closeUnstarted(db, projectId, runId),
    deliverOverdue: async () => {
      const started = await starts.each(toRows(await listUndeliveredStarts(db, overdueMs, batch)));
      await ends.each(await listEndedUnstarted(db, startOverMs, batch));
      return started + (await deliverCancels()).delivered + (await deliverControls()).delivered;
    },
    startOthers: async () => deliverEach(starts, await listStartedByOthers(db, batch)),
    deliverCancels,
    deliverControls,
    settled: async () => {
      await Promise.all([starts, cancels, controls, ends].map((deliveries) => deliveries.settled()));
    },
  };
}

function openDeliveries(dependencies: RunDeliveryDependencies, { start, cancel, control }: RunMessages) {
  const { logger } = dependencies;
  const deliver = (what: string, work: (runId: string) => Promise<void>) =>
    createDeliveries<Row>({ what, deliver: ({ run_id }) => work(run_id), logger });
  return {
    starts: deliver('a start', start),
    cancels: deliver('a cancel', cancel),
    controls: deliver('a pause, a resume or another ceiling', control),
    ends: createDeliveries<RunRef>({
      what: 'the end of a start',
      deliver: (row) => endUnmarked(dependencies, row),
      logger,
    }),
  };
}

async function deliverEach(deliveries: Deliveries<Row>, runIds: readonly string[]): Promise<DeliveryCount> {
  return { due: runIds.length, delivered: await deliveries.each(toRows(runIds)) };
}
