import { type CallLogLine, callLogBounds } from '@capstan/core/call/log-lines';
import type { CallProgress } from '@capstan/core/call/outcome';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isProgressive, toOrdinaryAnswer } from '../../src/clients/read-answer.ts';
import { createToldLines } from '../../src/clients/response-lines.ts';
import { anyText } from '../support/any-text.ts';
import { countProcessorMs } from '../support/processor-time.ts';

/** The reports, and the text that stays, of a text that comes in these pieces. */
function read(pieces: readonly Buffer[]) {
  const told: CallProgress[] = [];
  const logged: CallLogLine[] = [];
  const log = { note: (line: CallLogLine) => logged.push(line) > 0, flush: () => undefined };
  const lines = createToldLines({ onProgress: (progress) => told.push(progress), log }, undefined, () => 0);
  const kept = [...pieces.map((piece) => lines.take(piece) ?? Buffer.from('cut')), lines.rest()];
  lines.end();
  return { told, logged, kept: Buffer.concat(kept).toString() };
}

const text = `{"progress":0.1}
{"log":{"level":"info","message":"zwölf clips"}}
{"progress":1,"message":"encöding","log":{"level":"warn","message":"slow"}}
{"ok":true,"output":{"progress":2,"log":{"level":"info","message":"mine"}}}`;
const whole = {
  told: [{ progress: 0.1 }, { progress: 1, message: 'encöding' }],
  logged: [
    { level: 'info', message: 'zwölf clips' },
    { level: 'warn', message: 'slow' },
  ],
  kept: '{"ok":true,"output":{"progress":2,"log":{"level":"info","message":"mine"}}}',
};

test('cut anywhere, progress and log lines are reported and the answer stays', () => {
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
  '%s is ignored without effect',
  (line) => {
    expect(read([Buffer.from(`${line}\n{"ok":true}`)])).toEqual({
      told: [],
      logged: [],
      kept: '{"ok":true}',
    });
  },
);

test('other fields of a line of progress are left out', () => {
  const { told, kept } = read([Buffer.from('{"progress":0.5,"message":1,"eta_s":4}\n')]);
  expect([told, kept]).toEqual([[{ progress: 0.5 }], '']);
});

test('an instance that sends more lines than the bound is cut off', () => {
  const lines = createToldLines({}, 1_000);
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
  '{"log":"all of it","output_path":"a.mp4"}',
  '{"ok":true,"log":{"level":"info","message":"x"}}',
  `{"log":"${'x'.repeat(5_000)}","output_path":"a.mp4"}`,
])('%.40s is part of the answer', (line) => {
  expect(read([Buffer.from(`${line}\n`)])).toEqual({ told: [], logged: [], kept: `${line}\n` });
});

const unknownLines = [
  '{"usage":{"input":3}}',
  '{"heartbeat":1}',
  '{"log":7,"progressed":0.5}',
  '{"delta":"not asked for"}',
  '{}',
];

test.each(unknownLines)('%s is skipped before an answer, however it comes', (line) => {
  const last = '{"ok":true,"output":{"a":1}}';
  const long = `{"ok":true,"output":"${'x'.repeat(9_000)}"}`;
  const told = '{"progress":0.5}';
  const isLog = line.startsWith('{"log"');
  for (const sent of [
    `${line}\n${last}`,
    `${line}\n${long}`,
    `${line}\n${long}\n`,
    `${line}\n\n${told}\n${line}\n${last}\n`,
    `${told}\n${line}\n{"path":"a.mp4"}`,
  ]) {
    for (const size of [1, 7, 4_096]) {
      const bytes = Buffer.from(sent);
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      const { kept, logged } = read(pieces);
      expect(kept.trim()).toBe(sent.split('\n').filter(Boolean).at(-1));
      if (!isLog) expect(logged).toEqual([]);
    }
  }
});

test.each(unknownLines)('%s is the answer when it is last', (line) => {
  if (line.startsWith('{"log"')) return;
  expect(read([Buffer.from(`{"progress":1}\n${line}\n`)]).kept).toBe(`${line}\n`);
  expect(read([Buffer.from(`{"progress":1}\n${line}`)]).kept).toBe(line);
});

test('an answer over several lines stays whole, and one with ok is not skipped', () => {
  const pretty = '{\n "items": [\n  {"a": 1}\n ]\n}\n';
  expect(read([Buffer.from(pretty)]).kept).toBe(pretty);
  const two = '{"ok":true}\n{"usage":1}\n';
  expect(read([Buffer.from(two)]).kept).toBe(two);
});

test('lines of an unknown kind count against the bound', () => {
  const lines = createToldLines({}, 1_000);
  const line = Buffer.from('{"heartbeat":1}\n');
  const taken = Array.from({ length: 100 }, () => lines.take(line));
  expect(taken.indexOf(null)).toBe(Math.floor(1_000 / line.length) + 1);
});

test('a message is one short line', () => {
  const { told } = read([Buffer.from(`{"progress":0,"message":"a\\nb${'x'.repeat(300)}"}\n`)]);
  expect(told[0]?.message).toMatch(/^a bx{197}$/);
});

test('half a character in a message is replaced, also where the message is cut', () => {
  const { told } = read([Buffer.from(`{"progress":0,"message":"\\ud800${'x'.repeat(198)}😀"}\n`)]);
  expect(told[0]?.message).toBe(`\ufffd${'x'.repeat(198)}\ufffd`);
});

test('an answer of many values is left to the reader that counts them', () => {
  const body = Buffer.from(`{"ok":false,"status":503,"a":[${'[],'.repeat(4_000_000)}[]]}`);
  const spentMs = countProcessorMs();
  expect(toOrdinaryAnswer({ status: 200, headers: {}, body }).status).toBe(200);
  expect(spentMs()).toBeLessThan(100);
});

test('an answer that fails at its end carries its status there', () => {
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

const answer = '{"ok":true}';

function logOf(lines: readonly unknown[]) {
  const { kept, logged } = read([
    Buffer.from(`${lines.map((line) => `${JSON.stringify(line)}\n`).join('')}${answer}`),
  ]);
  expect(kept).toBe(answer);
  return logged;
}

function aLine(message: string, level = 'info') {
  return { log: { level, message } };
}

test('a line that is not kept is counted', () => {
  const message = '1 line was dropped; 1 had no known level or no message';
  expect(logOf([{ log: 'text' }])).toEqual([{ level: 'warn', message }]);
});

test('a line beyond all bounds is dropped however it comes', () => {
  const bytes = Buffer.from(`${JSON.stringify(aLine('x'.repeat(50_000)))}\n${answer}`);
  const pieces = Array.from({ length: bytes.length / 1_000 }, (_, at) =>
    bytes.subarray(at * 1_000, (at + 1) * 1_000),
  );
  const left = bytes.subarray(pieces.length * 1_000);
  for (const cut of [[bytes], [...pieces, left]]) {
    const logged = [{ level: 'warn', message: '1 line was dropped' }];
    expect(read(cut)).toEqual({ told: [], logged, kept: answer });
  }
});

test('of a flood a part is kept, room is left for errors, and the rest is counted', () => {
  const flood = Array.from({ length: 1_000 }, (_, at) => aLine(`line ${at}`));
  const logged = logOf([...flood, aLine('the disk is full', 'error')]);
  const { burst } = callLogBounds;
  expect(logged.slice(0, -2)).toEqual(flood.slice(0, 0.8 * burst).map(({ log }) => log));
  expect(logged.slice(-2)).toEqual([
    { level: 'error', message: 'the disk is full' },
    { level: 'warn', message: `${1_000 - 0.8 * burst} lines were dropped` },
  ]);
});

test('a line for which there is no room counts as dropped', () => {
  const logged: CallLogLine[] = [];
  let isFull = true;
  const log = { note: (line: CallLogLine) => !isFull && logged.push(line) > 0, flush: () => undefined };
  const lines = createToldLines({ log });
  lines.take(Buffer.from(`${JSON.stringify(aLine('a'))}\n`));
  isFull = false;
  lines.end();
  lines.end();
  expect(logged).toEqual([{ level: 'warn', message: '1 line was dropped' }]);
});

test('no bytes before an answer can break it', () => {
  const fragment = fc.oneof(
    fc.constantFrom(
      '{"log":{',
      '{"log":',
      '"level":"info"',
      ',"message":"',
      '"}}',
      '{"progress":',
      '\\ud800',
      '}',
    ),
    anyText({ maxLength: 20 }),
  );
  const line = fc.oneof(
    fc.array(fragment, { maxLength: 8 }).map((parts) => Buffer.from(parts.join('').replaceAll('\n', ' '))),
    fc
      .uint8Array({ maxLength: 60 })
      .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 10 ? 0 : byte)))),
    fc.json().map((json) => Buffer.from(`{"log":${json}}`)),
    fc.record({ level: fc.constantFrom('info', 'error'), message: anyText() }).map((log) => {
      return Buffer.from(JSON.stringify({ log }));
    }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 30 }), fc.nat(50), (lines, size) => {
      const bytes = Buffer.concat([...lines.flatMap((one) => [one, Buffer.from('\n')]), Buffer.from(answer)]);
      const pieces = Array.from({ length: Math.ceil(bytes.length / (size + 1)) }, (_, at) =>
        bytes.subarray(at * (size + 1), (at + 1) * (size + 1)),
      );
      const { logged, kept } = read(pieces);
      expect(kept.endsWith(answer)).toBe(true);
      for (const { level, message } of logged) {
        expect(['info', 'warn', 'error', 'debug']).toContain(level);
        expect(message).not.toMatch(/(?![\n\t])\p{Cc}|\p{Cs}|^$/u);
        expect(message.length).toBeLessThanOrEqual(callLogBounds.messageLength);
      }
    }),
  );
});

test('parts of the result are sent to a listener that asked for them, and are an answer to any other', () => {
  const long = 'é'.repeat(6_000);
  const parts = `{"delta":"a"}\n{"delta":${JSON.stringify(long)}}\n{"delta":{"content":"b"}}\n`;
  const last = '{"ok":true,"output":{"delta":1}}';
  const readParts = (sent: string) => {
    const told: unknown[] = [];
    const lines = createToldLines({ onDelta: (delta) => told.push(delta) });
    return { kept: `${lines.take(Buffer.from(sent))}${lines.rest()}`, told };
  };
  expect(readParts(parts + last)).toEqual({ kept: last, told: ['a', long, { content: 'b' }] });
  const tooLong = `{"delta":"${'x'.repeat(20_000)}"}\n`;
  expect(readParts(tooLong + last)).toEqual({ kept: last, told: [] });
  expect(read([Buffer.from('{"delta":1}')]).kept).toBe('{"delta":1}');
});
