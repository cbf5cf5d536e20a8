import { expect, test } from 'vitest';
import {
  createRequestScope,
  noTracing,
  type SpanStart,
  type Tracing,
} from '../../src/telemetry/telemetry.ts';
import type { TraceContext } from '../../src/telemetry/trace-context.ts';

const parent: TraceContext = {
  trace_id: 'a'.repeat(32),
  span_id: 'b'.repeat(16),
  is_sampled: true,
  is_random: false,
  state: '',
};
const runs = [
  'run_0198c2a4-0000-7000-8000-000000000001',
  'run_0198c2a4-0000-7000-8000-000000000002',
] as const;

function recording(): { tracing: Tracing; started: SpanStart[] } {
  const started: SpanStart[] = [];
  const start: Tracing['start'] = (span) => {
    started.push(span);
    const trace_id = span.parent?.trace_id ?? span.trace_id ?? 'r'.repeat(32);
    const context = {
      trace_id,
      span_id: `${started.length}`.padStart(16, '0'),
      is_sampled: true,
      is_random: false,
      state: '',
    };
    return { context, end: () => undefined };
  };
  return { started, tracing: { ...noTracing, start, isOn: true } };
}

function open(tracing: Tracing, from: TraceContext | null) {
  return createRequestScope(tracing, { parent: from, startMs: 1, nameOf: () => 'POST /v1/runs' });
}

test('the first run of a request without a trace takes the request into its own; the others begin theirs', () => {
  const { tracing, started } = recording();
  const scope = open(tracing, null);
  expect(scope.peek()).toBeNull();
  expect(scope.traceOfRun(runs[0])?.trace_id).toBe('0198c2a4000070008000000000000001');
  expect(scope.traceOfRun(runs[1])).toBeNull();
  scope.end({});
  expect(started).toHaveLength(1);
});

test('all runs of a request with a trace are in it', () => {
  const { tracing } = recording();
  const scope = open(tracing, parent);
  const traces = runs.map((run) => scope.traceOfRun(run)?.trace_id);
  expect(traces).toEqual([parent.trace_id, parent.trace_id]);
});

test('looking where it is, for a line of the log, begins no span', () => {
  const { tracing, started } = recording();
  expect(open(tracing, parent).peek()).toEqual(parent);
  expect(started).toEqual([]);
});

test('where nothing is recorded, what came in is passed on, and nothing is begun', () => {
  expect(open(noTracing, parent).traceOfRun(runs[0])).toEqual(parent);
  expect(open(noTracing, null).traceOfRun(runs[0])).toBeNull();
});
