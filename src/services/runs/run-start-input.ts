/** What the workflow of a run is started with, from its row. */
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import { parseDuration } from '../../core/duration.ts';
import { planRun } from '../../core/run/plan-run.ts';
import { listDispatchReasons } from '../../core/run/step-dispatch.ts';
import type { ControlSignal, RunPipelineInput } from '../../core/workflow-payloads/run-input.ts';
import type { DeliveryRow } from '../../db/run/run-delivery.ts';

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

export interface StartSettings {
  readonly workflows: Pick<RunWorkflows, 'hasSearchAttributes'>;
  readonly heartbeatTimeoutMs: number;
  /** The version of the runs that are started from now on. */
  readonly engineVersion: number;
  /** Events after which a run continues as new. */
  readonly historyEvents: number;
  /** Where a person sees a run. */
  readonly urlOf: (runId: string) => string;
}

export function controlOf({
  control_version: version,
  state,
  budget_version,
}: Pick<RunToStart, 'control_version' | 'state' | 'budget_version'>): ControlSignal {
  return { version, paused: state === 'paused', budget_version };
}

export function createInputReader(settings: StartSettings): (run: RunToStart) => Promise<RunPipelineInput> {
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
