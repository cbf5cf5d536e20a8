/**
 * Brings what the rows say to Temporal: starts and cancels. The process that took a request delivers at once;
 * maintenance repeats it for what a crash, or Temporal's absence, left undone.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import { parseDuration } from '../../core/duration.ts';
import { compileDefinition } from '../../core/pipeline/compile-definition.ts';
import { resolveEscalation } from '../../core/pipeline/escalation-settings.ts';
import { resolveStepSettings } from '../../core/pipeline/step-settings.ts';
import type { RunPlan } from '../../core/run/plan.ts';
import type { RunPipelineInput } from '../../core/run/workflow-input.ts';
import type { Db } from '../../db/connect.ts';
import {
  type DeliveryRow,
  listUndeliveredCancels,
  listUndeliveredStarts,
  markCancelDelivered,
  markStartDelivered,
  readDelivery,
} from '../../db/delivery.ts';
import { cancelRunEscalations } from '../../db/escalation.ts';
import { cancelRunReviews } from '../../db/review-delivery.ts';
import { finishRun } from '../../db/run.ts';
import { createDeliveries } from '../deliveries.ts';

export interface RunDelivery {
  /** Delivers in the background; a failure is left to maintenance. */
  startSoon(runId: string): void;
  cancelSoon(runId: string): void;
  /** @returns how many starts and cancels it made up for */
  deliverOverdue(): Promise<number>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

const maxInFlight = 200;
/** The process that took a run delivers it within this time, or never. */
const overdueMs = 3_000;
const batch = 200;

interface Row {
  readonly run_id: string;
}

const toRows = (runIds: readonly string[]): readonly Row[] => runIds.map((run_id) => ({ run_id }));

export const planRun = ({ definition }: Pick<DeliveryRow, 'definition'>): RunPlan => ({
  max_in_flight: maxInFlight,
  steps: compileDefinition(definition).steps.map((step) => ({
    id: step.definition.id,
    capability: step.definition.capability,
    dependencies: step.dependencies,
    total_timeout_ms: resolveStepSettings(definition, step.definition).totalTimeoutMs,
    ...(resolveEscalation(definition, step.definition).enabled ? { escalates: true } : {}),
  })),
});

export const createRunDelivery = ({
  db,
  workflows,
  heartbeatTimeoutMs,
  engineVersion,
  publicUrl,
  logger,
}: {
  readonly db: Db;
  readonly workflows: RunWorkflows;
  readonly heartbeatTimeoutMs: number;
  /** Of the runs that are started from now on. */
  readonly engineVersion: number;
  readonly publicUrl: () => string;
  readonly logger: Logger;
}): RunDelivery => {
  let searchable: Promise<boolean> | null = null;

  const hasSearchAttributes = (): Promise<boolean> => {
    searchable ??= workflows.hasSearchAttributes().catch((error: unknown) => {
      searchable = null;
      throw error;
    });
    return searchable;
  };

  const inputOf = async (row: DeliveryRow): Promise<RunPipelineInput> => ({
    engine_version: engineVersion,
    run_id: row.run_id,
    project_id: row.project_id,
    pipeline: row.pipeline,
    version: row.version,
    plan: planRun(row),
    timeout_ms: row.definition.timeout === undefined ? null : parseDuration(row.definition.timeout),
    heartbeat_timeout_ms: heartbeatTimeoutMs,
    has_search_attributes: await hasSearchAttributes(),
    run_url: `${publicUrl()}/v1/runs/${row.run_id}`,
  });

  const start = async (runId: string): Promise<void> => {
    const row = await readDelivery(db, runId);
    if (row === undefined) return;
    await workflows.start(await inputOf(row), row.priority);
    await markStartDelivered(db, runId);
    if (row.cancel_requested_at !== null) await cancel(runId);
  };

  /** Temporal has forgotten the workflow, or ended it itself: nobody else will close the run. */
  const closeLost = async ({ run_id, definition }: DeliveryRow): Promise<void> => {
    await finishRun(db, {
      run_id,
      state: 'cancelled',
      output: undefined,
      error: { code: 'run_cancelled', message: 'cancelled; its workflow had ended without closing it' },
      step_ids: definition.steps.map(({ id }) => id),
    });
    await cancelRunReviews(db, run_id);
    await cancelRunEscalations(db, run_id);
  };

  const cancel = async (runId: string): Promise<void> => {
    const row = await readDelivery(db, runId);
    if (row?.start_delivered_at == null) return;
    if ((await workflows.cancel(row.project_id, runId)) === 'gone') await closeLost(row);
    await markCancelDelivered(db, runId);
  };

  const starts = createDeliveries<Row>({ what: 'a start', deliver: ({ run_id }) => start(run_id), logger });
  const cancels = createDeliveries<Row>({
    what: 'a cancel',
    deliver: ({ run_id }) => cancel(run_id),
    logger,
  });

  return {
    startSoon: (run_id) => starts.soon({ run_id }),
    cancelSoon: (run_id) => cancels.soon({ run_id }),
    deliverOverdue: async () => {
      const started = await starts.each(toRows(await listUndeliveredStarts(db, overdueMs, batch)));
      return started + (await cancels.each(toRows(await listUndeliveredCancels(db, batch))));
    },
    settled: async () => {
      await Promise.all([starts.settled(), cancels.settled()]);
    },
  };
};
