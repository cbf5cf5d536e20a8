/**
 * Reports the spans of runs and steps when they end, with their true starts and with ids derived from the run and the
 * step. So a span that any process makes meanwhile names its parent before the parent was reported.
 */
import {
  type OpenSpan,
  type SpanAttributes,
  scopeOf,
  type Telemetry,
  type Tracing,
  type WorkScope,
} from '@capstan/core/telemetry/telemetry';
import { madeAtMs, readPlace, traceIdOf } from '@capstan/core/telemetry/trace-context';
import type { StepItemKey } from '../../db/attempt/attempt.ts';
import type { RunContextRow } from '../../db/run/run.ts';

export type TracedRun = Pick<
  RunContextRow,
  'run_id' | 'project_id' | 'pipeline' | 'version' | 'trace_parent'
>;

/** How a run or a step has ended. */
interface ToldEnd {
  readonly state: string;
  /** The code of its error; null: none. */
  readonly error: string | null;
}

export interface StepSpan {
  readonly kind: string;
  /** Null: none. */
  readonly capability: string | null;
  /** Unix milliseconds. */
  readonly startMs: number;
}

function describeRun({ run_id, project_id, pipeline, version }: TracedRun): SpanAttributes {
  return {
    'capstan.run_id': run_id,
    'capstan.project_id': project_id,
    'capstan.pipeline': pipeline,
    'capstan.version': version,
  };
}

function startRun({ start }: Tracing, run: TracedRun): OpenSpan {
  return start({
    name: `run ${run.pipeline}`,
    kind: 'internal',
    parent: readPlace(run.trace_parent),
    key: `run ${run.run_id}`,
    trace_id: traceIdOf(run.run_id),
    startMs: madeAtMs(run.run_id),
    attributes: describeRun(run),
  });
}

function startStep(
  tracing: Tracing,
  run: TracedRun,
  { key, step }: { key: StepItemKey; step?: StepSpan },
): OpenSpan {
  const { run_id, step_id, item } = key;
  return tracing.start({
    name: `step ${step_id}`,
    kind: 'internal',
    parent: startRun(tracing, run).context,
    key: `step ${run_id} ${step_id} ${item}`,
    ...(step === undefined ? {} : { startMs: step.startMs }),
    attributes: {
      'capstan.run_id': run_id,
      'capstan.step_id': step_id,
      ...(item === 0 ? {} : { 'capstan.item': item }),
      ...(step === undefined ? {} : { 'capstan.kind': step.kind }),
      ...(step?.capability == null ? {} : { 'capstan.capability': step.capability }),
    },
  });
}

type Traced = Pick<Telemetry, 'tracing'>;

/** @returns the scope for the work of a step, its item or its ladder */
export function scopeOfStep({ tracing }: Traced, run: TracedRun, key: StepItemKey): WorkScope {
  // Without spans, the span that started the run is the parent of all.
  const context = tracing.isOn ? startStep(tracing, run, { key }).context : readPlace(run.trace_parent);
  return scopeOf(context, run.run_id);
}

export function endStepSpan(
  { tracing }: Traced,
  { context: run, key }: { readonly context: TracedRun; readonly key: StepItemKey },
  { state, error, ...step }: StepSpan & ToldEnd,
): void {
  if (!tracing.isOn) return;
  startStep(tracing, run, { key, step }).end({ error, attributes: { 'capstan.state': state } });
}

export function endRunSpan({ tracing }: Traced, run: TracedRun, { state, error }: ToldEnd): void {
  if (tracing.isOn) startRun(tracing, run).end({ error, attributes: { 'capstan.state': state } });
}
