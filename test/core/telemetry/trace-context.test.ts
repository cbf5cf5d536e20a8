import { expect, test } from 'vitest';
import {
  formatTraceParent,
  madeAtMs,
  parseTraceParent,
  traceIdOf,
} from '../../../src/core/telemetry/telemetry.ts';
import { newId } from '../../../src/services/ids.ts';

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736';
const span_id = '00f067aa0ba902b7';

test.each([
  [`00-${trace_id}-${span_id}-01`, { trace_id, span_id, is_sampled: true }],
  [`00-${trace_id}-${span_id}-00`, { trace_id, span_id, is_sampled: false }],
  [`00-${trace_id}-${span_id}-03`, { trace_id, span_id, is_sampled: true }],
  // Of a later version the known parts are read, whatever follows them.
  [`cc-${trace_id}-${span_id}-01-what-will-be`, { trace_id, span_id, is_sampled: true }],
])('reads %s', (text, context) => {
  expect(parseTraceParent(text)).toEqual(context);
});

test.each([
  ...[undefined, null, '', 'nonsense', `00-${trace_id}-${span_id}`, `00-${trace_id}-${span_id}-01-more`],
  ...[`ff-${trace_id}-${span_id}-01`, `00-${trace_id.toUpperCase()}-${span_id}-01`],
  ...[`00-${'0'.repeat(32)}-${span_id}-01`, `00-${trace_id}-${'0'.repeat(16)}-01`],
])('takes %s for no trace', (text) => {
  expect(parseTraceParent(text)).toBeNull();
});

test('writes what it reads', () => {
  const text = `00-${trace_id}-${span_id}-01`;
  const context = parseTraceParent(text);
  expect(context === null ? null : formatTraceParent(context)).toBe(text);
});

test('the id of a run is the id of its trace, and says when it was made', () => {
  const before = Date.now();
  const id = newId('run');
  expect(traceIdOf(id)).toMatch(/^[0-9a-f]{32}$/);
  expect(madeAtMs(id)).toBeGreaterThanOrEqual(before);
  expect(madeAtMs(id)).toBeLessThanOrEqual(Date.now());
});
