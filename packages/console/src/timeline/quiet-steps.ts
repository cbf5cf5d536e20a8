/** Steps without a call of their own in time: waits, reviews, child runs and steps that still wait. */
import type { Awaiting, RunStep } from '@capstan/core/contracts/run-step';
import { endedStepStates } from '@capstan/core/run/ended-steps';
import { describeKind } from '../graph/node-model.ts';
import { edgesOfSpan, type TimeSpan } from './scale.ts';
import type { TimelineCall } from './timeline-model.ts';

/** Steps that have begun; reused and skipped ones take no time of this run. */
export function findQuietSteps(steps: readonly RunStep[], calls: readonly TimelineCall[]): RunStep[] {
  const called = new Set(calls.map(({ step_id }) => step_id));
  return steps.filter(
    ({ id, started_at, state }) =>
      started_at !== null && state !== 'reused' && state !== 'skipped' && !called.has(id),
  );
}

/** Its child run waits, for a person, money or an instance, as the run above it does. */
function waitsBelow({ awaiting }: RunStep, ofRun: readonly Awaiting[]): boolean {
  return awaiting === 'run' && ofRun.some((wait) => wait !== 'run' && wait !== 'time');
}

/**
 * A row from its start to its end, in the step's own state; a step without a call has waited.
 * @param ofRun the causes of waits in the run
 */
export function toQuietCall(step: RunStep, ofRun: readonly Awaiting[] = []): TimelineCall {
  const { id, revision, state, started_at, finished_at, cost_usd } = step;
  const isCalled =
    (step.pipeline !== undefined && !waitsBelow(step, ofRun)) ||
    state === 'failed' ||
    state === 'unknown' ||
    state === 'running';
  return {
    step_id: id,
    item: null,
    attempt_id: null,
    revision,
    level: null,
    endpoint: waitsBelow(step, ofRun)
      ? `${describeKind(step)}, which waits for ${ofRun.join(', ')}`
      : describeKind(step),
    state,
    ready_at: isCalled ? null : started_at,
    started_at: isCalled ? started_at : null,
    finished_at,
    expected_ms: null,
    expected_usd: null,
    reserved_usd: 0,
    cost_usd,
    certainty: null,
    error: null,
  };
}

/** A child run is activity for its whole duration; a mere wait only at its start and end. */
export function busyOfQuietStep({ pipeline, started_at, finished_at }: RunStep, now: number): TimeSpan[] {
  const span = { from: Date.parse(started_at ?? ''), to: Date.parse(finished_at ?? '') || now };
  return pipeline === undefined ? edgesOfSpan(span) : [span];
}

/**
 * Finds the open steps whose calls have all ended: since then they wait, for budget, a person, an instance, or a retry.
 */
export function findWaits(steps: readonly RunStep[], calls: readonly TimelineCall[]): TimelineCall[] {
  const ends = new Map<string, number>();
  for (const { step_id, finished_at } of calls) {
    const end = finished_at === null ? Number.POSITIVE_INFINITY : Date.parse(finished_at);
    ends.set(step_id, Math.max(ends.get(step_id) ?? 0, end));
  }
  return steps.flatMap((step) => {
    const end = ends.get(step.id);
    if (end === undefined || !Number.isFinite(end) || endedStepStates.has(step.state)) return [];
    const ready_at = new Date(end).toISOString();
    return [{ ...toQuietCall(step), ready_at, started_at: null, finished_at: null, cost_usd: 0 }];
  });
}
