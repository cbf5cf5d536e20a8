import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newId } from '../../../../src/parts/ids.ts';
import {
  formatPlace,
  madeAtMs,
  readPlace,
  readTrace,
  toTraceHeaders,
  traceIdOf,
} from '../../src/telemetry/trace-context.ts';

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736';
const span_id = '00f067aa0ba902b7';
const traceparent = `00-${trace_id}-${span_id}-01`;
const known = { trace_id, span_id, state: '' };

test.each([
  [traceparent, { ...known, is_sampled: true, is_random: false }],
  [`00-${trace_id}-${span_id}-00`, { ...known, is_sampled: false, is_random: false }],
  [`00-${trace_id}-${span_id}-03`, { ...known, is_sampled: true, is_random: true }],
  [`00-${trace_id}-${span_id}-fe`, { ...known, is_sampled: false, is_random: true }],
  // Of a later version the known parts are read, whatever follows them.
  [`cc-${trace_id}-${span_id}-01-what-will-be`, { ...known, is_sampled: true, is_random: false }],
])('reads %s', (text, context) => {
  expect(readTrace(text)).toEqual(context);
});

test.each([
  ...[undefined, null, '', 'nonsense', `00-${trace_id}-${span_id}`, `00-${trace_id}-${span_id}-01-more`],
  ...[`ff-${trace_id}-${span_id}-01`, `00-${trace_id.toUpperCase()}-${span_id}-01`],
  ...[`00-${'0'.repeat(32)}-${span_id}-01`, `00-${trace_id}-${'0'.repeat(16)}-01`],
  ...[`${traceparent}, ${traceparent}`],
])('takes %s for no trace, whatever its state', (text) => {
  expect(readTrace(text)).toBeNull();
  expect(readTrace(text, 'congo=1')).toBeNull();
});

function stateOf(tracestate: string): string | undefined {
  return readTrace(traceparent, tracestate)?.state;
}

function membersOf(count: number, value = 'v'): string {
  return Array.from({ length: count }, (_, at) => `k${at}=${value}`).join(',');
}

const allOfValue = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at))
  .filter((char) => char !== ',' && char !== '=')
  .join('');

test.each<[what: string, given: string, carried: string]>([
  ['one member', 'rojo=00f067aa0ba902b7', 'rojo=00f067aa0ba902b7'],
  ['members in their order', 'rojo=1,congo=2', 'rojo=1,congo=2'],
  ['several headers, joined as HTTP joins them', 'foo=1,bar=2, rojo=1, , baz=3', 'foo=1,bar=2,rojo=1,baz=3'],
  ['spaces and tabs around members', 'foo=1 \t , \t bar=2, \t baz=3\t', 'foo=1,bar=2,baz=3'],
  ['spaces that a value begins with', 'foo=  a b,bar=2', 'foo=  a b,bar=2'],
  ['every character of a value', `foo=${allOfValue}`, `foo=${allOfValue}`],
  ['every character of a key', 'abyz019_-*/@abyz019_-*/=1', 'abyz019_-*/@abyz019_-*/=1'],
  ['a tenant of level 1', 'fw529a3039@dt=FfffAQ', 'fw529a3039@dt=FfffAQ'],
  ['keys of level 2', '0a=1,foo@=2,foo@@bar=3,foo@bar@baz=4', '0a=1,foo@=2,foo@@bar=3,foo@bar@baz=4'],
  ['the newest of two members with one key', 'foo=new,bar=2,foo=old', 'foo=new,bar=2'],
  ['32 members', membersOf(32), membersOf(32)],
  ['a key of 256 characters', `${'z'.repeat(256)}=1,foo=1`, `${'z'.repeat(256)}=1,foo=1`],
  ['a value of 256 characters', `foo=${'z'.repeat(256)}`, `foo=${'z'.repeat(256)}`],
  [
    'all of 512 characters',
    `foo=${'z'.repeat(252)},bar=${'z'.repeat(251)}`,
    `foo=${'z'.repeat(252)},bar=${'z'.repeat(251)}`,
  ],
  [
    'of more than 512 characters no long member',
    `a=${'z'.repeat(127)},${membersOf(30, 'z'.repeat(12))}`,
    membersOf(30, 'z'.repeat(12)),
  ],
  ['then whole members from the left', membersOf(10, 'z'.repeat(97)), membersOf(5, 'z'.repeat(97))],
])('carries %s', (_, given, carried) => {
  expect(stateOf(given)).toBe(carried);
});

test.each([
  ['nothing', ''],
  ['commas and spaces', ' ,,\t, '],
  ['33 members', membersOf(33)],
  ['a member without a value', 'foo=,bar=3'],
  ['a member without a key', '=1,bar=3'],
  ['a member without an equals sign', 'bar=3,foo'],
  ['two equals signs', 'bar=3,foo=bar=baz'],
  ['a key in capitals', 'FOO=1,bar=2'],
  ['a key with a space', 'foo =1'],
  ['a key with a dot', 'foo.bar=1'],
  ['a key that begins with @', '@foo=1,bar=2'],
  ['a key of 257 characters', `${'z'.repeat(257)}=1`],
  ['a value of 257 characters', `foo=${'z'.repeat(257)}`],
  ['a character that is not ASCII', 'foo=é'],
  ['a line break', 'foo=1\r\nx-other: 1'],
  ['a tab in a value', 'foo=a\tb'],
])('drops a state of %s, and keeps the trace', (_, given) => {
  expect(stateOf(given)).toBe('');
});

test('passes on what it reads, and keeps it in a row', () => {
  const key = fc.stringMatching(/^[a-z0-9][a-z0-9_*/@-]{0,20}$/);
  const value = fc.stringMatching(/^[ -+--<>-~]{0,20}[!-+--<>-~]$/);
  const members = fc.uniqueArray(fc.tuple(key, value), { selector: ([name]) => name, maxLength: 11 });
  const context = fc.record({
    trace_id: fc.stringMatching(/^[0-9a-f]{31}[1-9a-f]$/),
    span_id: fc.stringMatching(/^[0-9a-f]{15}[1-9a-f]$/),
    is_sampled: fc.boolean(),
    is_random: fc.boolean(),
    state: members.map((some) => some.map((pair) => pair.join('=')).join(',')),
  });
  fc.assert(
    fc.property(context, (given) => {
      const headers = toTraceHeaders(given);
      expect(readTrace(headers.traceparent, headers.tracestate)).toEqual(given);
      expect('tracestate' in headers).toBe(given.state !== '');
      expect(readPlace(formatPlace(given))).toEqual(given);
    }),
  );
  expect(readPlace(null)).toBeNull();
});

test('the id of a run is the id of its trace, and contains the time at which it was made', () => {
  const before = Date.now();
  const id = newId('run');
  expect(traceIdOf(id)).toMatch(/^[0-9a-f]{32}$/);
  expect(madeAtMs(id)).toBeGreaterThanOrEqual(before);
  expect(madeAtMs(id)).toBeLessThanOrEqual(Date.now());
});
