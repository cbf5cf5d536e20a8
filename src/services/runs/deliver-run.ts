/**
 * Brings what the rows say to Temporal: starts, cancels, and what people ask of runs under way. The process that took a
 * request delivers at once; maintenance repeats it for what a crash, or Temporal's absence, left undone.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Failure } from '../../contracts/primitives.ts';
import { parseDuration } from '../../core/duration.ts';
import { planRun } from '../../core/run/plan-run.ts';
import type { ControlSignal, RunPipelineInput } from '../../core/workflow-payloads/run-input.ts';
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
  markStartDelivered,
  readDelivery,
} from '../../db/run/run-delivery.ts';
import { createDeliveries, overdueMs } from '../delivery/deliveries.ts';
import { closeLostRun, type LostRun } from './close-lost-run.ts';

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

interface UnmarkedRow extends Row {
  readonly project_id: string;
}

function toRows(runIds: readonly string[]): readonly Row[] {
  return runIds.map((run_id) => ({ run_id }));
}

function controlOf({ control_version: version, state, budget_version }: RunToStart): ControlSignal {
  return {
    version,
    paused: state === 'paused',
    budget_version,
  };
}

export interface RunDeliveryDependencies {
  readonly db: Db;
  readonly workflows: RunWorkflows;
  readonly heartbeatTimeoutMs: number;
  /** Of the runs that are started from now on. */
  readonly engineVersion: number;
  /** Events after which a run goes on in a new history. */
  readonly historyEvents: number;
  readonly publicUrl: () => string;
  readonly logger: Logger;
}

function cancelledEnd(message: string): Failure {
  return { code: 'run_cancelled', message };
}

export function createRunDelivery(dependencies: RunDeliveryDependencies): RunDelivery {
  const { db, workflows, logger } = dependencies;
  const toInput = createInputReader(dependencies);

  const start = async (runId: string): Promise<void> => {
    const row = await readDelivery(db, runId);
    if (row === undefined || row.finished_at !== null) return;
    if (row.start_delivered_at === null && !row.waits_its_turn) await startKnown(row);
  };

  /** Of what was asked of it since its row was read, or written, the mark tells. */
  const startKnown = async (run: RunToStart): Promise<void> => {
    const { run_id: runId, project_id, control_version: version } = run;
    await workflows.start(await toInput(run), run.priority, version === 0 ? null : controlOf(run));
    const { is_cancelled, is_terminated, is_changed } = await markStartDelivered(db, runId, version);
    if (is_terminated) await workflows.terminate(project_id, runId, 'the run was cancelled as it started');
    else if (is_cancelled) await cancel(runId);
    else if (is_changed) await control(runId);
  };

  const close = (run: LostRun, message: string, mode: DeliveryRow['cancel_mode']): Promise<void> =>
    closeLostRun(db, run, { state: 'cancelled', error: cancelledEnd(message), mode: mode ?? 'graceful' });

  const closeUnstarted = (project_id: string, run_id: string): Promise<void> =>
    db.transaction(async (trx) => {
      const row = await lockRun(trx, { project_id, run_id });
      if (row?.state !== 'cancelling' || row.start_delivered_at !== null) return;
      const waits = row.concurrency_key !== null && row.admitted_at === null;
      if (!waits && row.cancel_mode !== 'terminate') return; // its start may be under way
      const error = cancelledEnd('cancelled before it had started');
      await closeLostRun(trx, row, { state: 'cancelled', mode: 'graceful', error });
    });

  const cancel = async (runId: string): Promise<void> => {
    const row = await readDelivery(db, runId);
    if (row === undefined || row.finished_at !== null) return;
    const { project_id, cancel_mode } = row;
    if (row.start_delivered_at === null) return closeUnstarted(project_id, runId);
    if (cancel_mode === 'terminate') {
      await workflows.terminate(project_id, runId, 'the run was cancelled');
      await close(row, 'cancelled; its workflow was terminated', cancel_mode);
    } else if ((await workflows.cancel(project_id, runId)) === 'gone') {
      // Temporal has forgotten the workflow, or ended it itself: nobody else will close the run.
      await close(row, 'cancelled; its workflow had ended without closing it', cancel_mode);
    }
    await markCancelDelivered(db, runId, cancel_mode ?? 'graceful');
  };

  /** Its server may have died between the start and the mark of it. */
  const endUnmarked = async ({ run_id, project_id }: UnmarkedRow): Promise<void> => {
    await workflows.terminate(project_id, run_id, 'the run was cancelled as it started');
    await markCancelDelivered(db, run_id, 'terminate');
  };

  const control = async (runId: string): Promise<void> => {
    const row = await readDelivery(db, runId);
    if (row === undefined || row.finished_at !== null) return;
    if (row.start_delivered_at === null) return start(runId);
    if (row.control_delivered >= row.control_version) return;
    await workflows.signalControl(row.project_id, runId, controlOf(row));
    await markControlDelivered(db, runId, row.control_version);
  };

  const deliver = (what: string, work: (runId: string) => Promise<void>) =>
    createDeliveries<Row>({ what, deliver: ({ run_id }) => work(run_id), logger });
  const starts = deliver('a start', start);
  const cancels = deliver('a cancel', cancel);
  const controls = deliver('a pause, a resume or another ceiling', control);

  const ends = createDeliveries({ what: 'the end of a start', deliver: endUnmarked, logger });

  const each = async (deliveries: typeof starts, runIds: readonly string[]): Promise<DeliveryCount> => ({
    due: runIds.length,
    delivered: await deliveries.each(toRows(runIds)),
  });
  const deliverCancels = async () => each(cancels, await listUndeliveredCancels(db, batch));
  const deliverControls = async () => each(controls, await listUndeliveredControls(db, batch));

  return {
    startSoon: (run_id) => void starts.soon({ run_id }),
    startNew: (run) => void starts.soon({ run_id: run.run_id }, () => startKnown(run)),
    cancelSoon: (run_id) => void cancels.soon({ run_id }),
    controlSoon: (run_id) => void controls.soon({ run_id }),
    closeUnstarted,
    deliverOverdue: async () => {
      const started = await starts.each(toRows(await listUndeliveredStarts(db, overdueMs, batch)));
      await ends.each(await listEndedUnstarted(db, startOverMs, batch));
      return started + (await deliverCancels()).delivered + (await deliverControls()).delivered;
    },
    startOthers: async () => each(starts, await listStartedByOthers(db, batch)),
    deliverCancels,
    deliverControls,
    settled: async () => {
      await Promise.all([starts, cancels, controls, ends].map((deliveries) => deliveries.settled()));
    },
  };
}

function createInputReader({
  workflows,
  heartbeatTimeoutMs,
  engineVersion,
  historyEvents,
  publicUrl,
}: Omit<RunDeliveryDependencies, 'db' | 'logger'>) {
  let searchable: Promise<boolean> | null = null;
  const hasSearchAttributes = (): Promise<boolean> => {
    searchable ??= workflows.hasSearchAttributes().catch((error: unknown) => {
      searchable = null;
      throw error;
    });
    return searchable;
  };

  return async ({ definition, reused, ...row }: RunToStart): Promise<RunPipelineInput> => ({
    engine_version: engineVersion,
    run_id: row.run_id,
    project_id: row.project_id,
    pipeline: row.pipeline,
    version: row.version,
    plan: planRun(definition, { reused }),
    timeout_ms: definition.timeout === undefined ? null : parseDuration(definition.timeout),
    heartbeat_timeout_ms: heartbeatTimeoutMs,
    has_search_attributes: await hasSearchAttributes(),
    run_url: `${publicUrl()}/v1/runs/${row.run_id}`,
    history_events: historyEvents,
    ...(row.control_version === 0 ? {} : { control: controlOf({ definition, reused, ...row }) }),
  });
}
