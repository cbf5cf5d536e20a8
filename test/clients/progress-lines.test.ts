import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createProgressLines, isProgressive, toOrdinaryAnswer } from '../../src/clients/read-answer.ts';
import type { CallProgress } from '../../src/core/call/outcome.ts';
import { countProcessorMs } from '../support/processor-time.ts';

/** What is told, and what stays, of a text that comes in these pieces. */
function read(pieces: readonly Buffer[]) {
  const told: CallProgress[] = [];
  const lines = createProgressLines((progress) => told.push(progress));
  const kept = [...pieces.map((piece) => lines.take(piece) ?? Buffer.from('cut')), lines.rest()];
  return { told, kept: Buffer.concat(kept).toString() };
}

const text = '{"progress":0.1}\n{"progress":1,"message":"encöding"}\n{"ok":true,"output":{"progress":2}}';
const whole = {
  told: [{ progress: 0.1 }, { progress: 1, message: 'encöding' }],
  kept: '{"ok":true,"output":{"progress":2}}',
};

test('however it is cut, progress is told and the answer stays', () => {
  const bytes = Buffer.from(text);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
      expect(read(pieces)).toEqual(whole);
    }),
  );
});

test.each(['{"progress":2}', '{"progress":"1","message":"half"}', '{"progress":null,"eta_s":4}'])(
  '%s tells nothing and harms nobody',
  (line) => {
    expect(read([Buffer.from(`${line}\n{"ok":true}`)])).toEqual({ told: [], kept: '{"ok":true}' });
  },
);

test('what a line says besides its progress is left out', () => {
  const { told, kept } = read([Buffer.from('{"progress":0.5,"message":1,"eta_s":4}\n')]);
  expect([told, kept]).toEqual([[{ progress: 0.5 }], '']);
});

test('whoever tells more than anybody listens to is cut off', () => {
  const lines = createProgressLines(() => undefined, 1_000);
  const line = Buffer.from('{"progress":0.5}\n');
  const taken = Array.from({ length: 100 }, () => lines.take(line));
  expect(taken.indexOf(null)).toBe(Math.floor(1_000 / line.length));
  expect(taken.at(-1)).toBeNull();
});

test.each([
  '{"ok":true,"progress":0.5}',
  '[0.5]',
  'progress',
  `{"progress":0.5,"message":"${'x'.repeat(5_000)}"}`,
])('%.40s is no progress', (line) => {
  expect(read([Buffer.from(`${line}\n`)])).toEqual({ told: [], kept: `${line}\n` });
});

test('a message is one short line', () => {
  const { told } = read([Buffer.from(`{"progress":0,"message":"a\\nb${'x'.repeat(300)}"}\n`)]);
  expect(told[0]?.message).toMatch(/^a bx{197}$/);
});

test('half a character in a message is replaced, also where the message is cut', () => {
  const { told } = read([Buffer.from(`{"progress":0,"message":"\\ud800${'x'.repeat(198)}😀"}\n`)]);
  expect(told[0]?.message).toBe(`\ufffd${'x'.repeat(198)}\ufffd`);
});

test('an answer of many values is left to whoever counts them', () => {
  const body = Buffer.from(`{"ok":false,"status":503,"a":[${'[],'.repeat(4_000_000)}[]]}`);
  const spentMs = countProcessorMs();
  expect(toOrdinaryAnswer({ status: 200, headers: {}, body }).status).toBe(200);
  expect(spentMs()).toBeLessThan(100);
});

test('what fails in the end says its status there', () => {
  const answer = (body: object) =>
    toOrdinaryAnswer({
      status: 200,
      headers: { 'content-type': 'application/x-ndjson' },
      body: Buffer.from(JSON.stringify(body)),
    });
  expect(answer({ ok: true })).toMatchObject({
    status: 200,
    headers: { 'content-type': 'application/json' },
  });
  expect(answer({ ok: false, status: 503, retry_after_s: 2, error_code: 'x' })).toMatchObject({
    status: 503,
    headers: { 'retry-after': '2', 'x-error-code': 'x' },
  });
  for (const status of [200, 302, 99, 'x']) expect(answer({ ok: false, status }).status).toBe(200);
});

test.each([
  [200, 'application/x-ndjson; charset=utf-8', true],
  [200, 'application/json', false],
  [503, 'application/x-ndjson', false],
])('an answer %i of %s comes line by line: %s', (status, type, expected) => {
  expect(isProgressive({ status, headers: { 'content-type': type } })).toBe(expected);
});
