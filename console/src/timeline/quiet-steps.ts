/** Steps without a call of their own (a pause, a question, a run of another pipeline, one that still waits) in time. */
import type { RunStep } from '../../../src/contracts/run.ts';
import { describeKind } from '../graph/node-model.ts';
import { edgesOfSpan, type TimeSpan } from './scale.ts';
import type { TimelineCall } from './timeline-model.ts';

/** Those that have begun; what another run did, or nobody, takes no time of this one. */
export function findQuietSteps(steps: readonly RunStep[], calls: readonly TimelineCall[]): RunStep[] {
  const called = new Set(calls.map(({ step_id }) => step_id));
  return steps.filter(
    ({ id, started_at, state }) =>
      started_at !== null && state !== 'reused' && state !== 'skipped' && !called.has(id),
  );
}

/** As a row shows it: from its begin to its end, in its own state. */
export function toQuietCall(step: RunStep): TimelineCall {
  const { id, revision, state, started_at, finished_at, cost_usd } = step;
  return {
    step_id: id,
    item: null,
    attempt_id: null,
    revision,
    level: null,
    endpoint: describeKind(step),
    state,
    ready_at: null,
    started_at,
    finished_at,
    expected_ms: null,
    expected_usd: null,
    reserved_usd: 0,
    cost_usd,
    certainty: null,
    error: null,
  };
}

/** Something is under way while a run of another pipeline is; what only waits begins and ends. */
export function busyOfQuietStep({ pipeline, started_at, finished_at }: RunStep, now: number): TimeSpan[] {
  const span = { from: Date.parse(started_at ?? ''), to: Date.parse(finished_at ?? '') || now };
  return pipeline === undefined ? edgesOfSpan(span) : [span];
}
