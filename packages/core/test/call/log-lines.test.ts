import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '../../../../test/support/any-text.ts';
import {
  callLogBounds,
  createLogAllowance,
  describeDropped,
  isAtLeast,
  isLogLine,
  readLogLine,
  readStepLog,
  toDeltaLine,
} from '../../src/call/log-lines.ts';
import type { LogLevel } from '../../src/contracts/event.ts';

const { lines, bytes, burst, perSecond, messageLength } = callLogBounds;
const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

test('a level is at least itself and every lower one', () => {
  for (const [at, level] of levels.entries()) {
    expect(levels.filter((least) => isAtLeast(level, least))).toEqual(levels.slice(0, at + 1));
  }
});

describe('an event', () => {
  const data = { level: 'warn', message: 'slow', endpoint: 'http://a', delta: true };
  test.each([
    ['is a log line', 'step.log', data, { level: 'warn', message: 'slow', endpoint: 'http://a' }],
    ['has another type', 'step.started', data, null],
    ['has another level', 'step.log', { ...data, level: 'toString' }, null],
    ['has no data', 'step.log', null, null],
    ['has a list', 'step.log', [], null],
    ['has a text', 'step.log', 'slow', null],
  ] as const)('%s', (_, type, fields, line) => {
    expect(readStepLog({ type, data: fields as never })).toEqual(line);
  });
});

describe('a line of an answer', () => {
  test.each([
    [true, { log: 'text' }],
    [true, { log: null }],
    [true, { log: { level: 'info', message: 'x' } }],
    [true, { log: { level: 'info' }, at: 5 }],
    [true, { log: { message: 'x' }, at: 5 }],
    [false, { log: { text: 'x' }, at: 5 }],
    [false, { log: 'text', output_path: 'a.mp4' }],
    [false, { log: null, output_path: 'a.mp4' }],
    [false, { log: ['level'], output_path: 'a.mp4' }],
    [false, { log: { level: 'info', message: 'x' }, ok: true }],
    [false, { message: 'x' }],
    [false, {}],
    [false, [{ log: 'text' }]],
    [false, null],
    [false, 'log'],
  ])('%s: %j is a log line', (expected, value) => {
    expect(isLogLine(value)).toBe(expected);
  });

  test.each([
    { log: 'text' },
    { log: null },
    { log: [] },
    { log: { level: 'fatal', message: 'x' } },
    { log: { level: 7, message: 'x' } },
    { log: { level: 'info' } },
    { log: { level: 'info', message: 7 } },
    { log: { level: 'info', message: '' } },
    { log: { level: 'info', message: ' \u001b[0m\u0007' } },
    { log: { message: 'x' } },
    {},
  ])('%j is not kept', (line) => {
    expect(readLogLine(line)).toBeNull();
  });
});

function messageOf(message: string): string | undefined {
  return readLogLine({ log: { level: 'info', message, extra: 1 }, at: 5 })?.message;
}

describe('a message', () => {
  test.each([
    ['has no space around it', '  a \n', 'a'],
    ['keeps line breaks and tabs', 'a\r\nb\rc\n\td', 'a\nb\nc\n\td'],
    ['has a space where a control stood', 'a\u0000b\u009fc\u007fd', 'a b c d'],
    ['has no colours', '\u001b[31mred\u001b[0m \u001b[?25lb \u001b[1 qc', 'red b c'],
    ['has no title', '\u001b]0;title\u0007a\u001b]8;;x\u001b\\b\u001b]c', 'ab'],
    ['changes no direction', 'a\u202eb\u2066c\u2069d', 'abcd'],
    ['has no half of a character', '\ud83d\ude00 \ud800 \ude00', '\ud83d\ude00 \ufffd \ufffd'],
    ['is cut', 'x'.repeat(9_000), 'x'.repeat(messageLength)],
    [
      'is cut within a character',
      `${'x'.repeat(messageLength - 1)}\u{1f600}`,
      `${'x'.repeat(messageLength - 1)}\ufffd`,
    ],
    [
      'is cut after its spaces',
      `${' '.repeat(messageLength)}${'x'.repeat(9_000)}`,
      'x'.repeat(messageLength),
    ],
  ])('%s', (_, sent, kept) => {
    expect(messageOf(sent)).toBe(kept);
  });

  test('of any text is safe to print', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const message = messageOf(text) ?? 'empty';
        expect(message).not.toMatch(/(?![\n\t])\p{Cc}|\p{Cs}|^$/u);
        expect(message.length).toBeLessThanOrEqual(messageLength);
      }),
    );
  });

  test('that is a piece of a text keeps its spaces and its length, and is cleaned', () => {
    expect(toDeltaLine(' \u001b[31mwor\ud800\u0007 ')).toEqual({
      level: 'debug',
      message: ' wor\ufffd  ',
      isDelta: true,
    });
    expect(toDeltaLine('x'.repeat(9_000)).message).toHaveLength(9_000);
  });
});

/** How many of these lines are kept, in order, by one call. */
function countKept(
  count: number,
  stepMs: number,
  level: LogLevel,
  message = 'x',
  allows = createLogAllowance(),
) {
  return Array.from({ length: count }, (_, at) => allows({ level, message }, at * stepMs)).filter(Boolean)
    .length;
}

describe('of the lines of a call', () => {
  test.each<[LogLevel, number]>([
    ['debug', 0.8],
    ['info', 0.8],
    ['warn', 1],
    ['error', 1],
  ])('%s has its share of each bound', (level, share) => {
    expect(countKept(1_000, 0, level)).toBe(share * burst);
    expect(countKept(2_000, 1_000, level)).toBe(share * lines);
    expect(countKept(1_000, 1_000, level, 'ü'.repeat(2_048))).toBe(Math.floor((share * bytes) / 4_096));
  });

  test('a verbose call still shows why it failed', () => {
    const allows = createLogAllowance();
    expect(countKept(1_000, 0, 'info', 'x', allows)).toBe(0.8 * burst);
    expect(countKept(1_000, 0, 'error', 'x', allows)).toBe(0.2 * burst);
  });

  test('some are kept again with time, and no more for a clock that steps back', () => {
    const allows = createLogAllowance();
    const noteAt = (nowMs: number) => allows({ level: 'error', message: 'x' }, nowMs);
    const fill = (nowMs: number) =>
      Array.from({ length: burst + 1 }, () => noteAt(nowMs)).filter(Boolean).length;
    expect(fill(0)).toBe(burst);
    expect(fill(1_000)).toBe(perSecond);
    expect(fill(1_050)).toBe(0);
    expect(fill(1_100)).toBe(1);
    expect(fill(0)).toBe(0);
    expect(fill(60_000)).toBe(burst);
  });
});

test.each([
  [0, 0, null],
  [1, 0, '1 line was dropped'],
  [1_600, 0, '1600 lines were dropped'],
  [0, 1, '1 line was dropped; 1 had no known level or no message'],
  [2, 1, '3 lines were dropped; 1 had no known level or no message'],
])('%i beyond the bounds and %i malformed are reported at the end', (beyond, wrong, message) => {
  expect(describeDropped({ beyond, wrong })).toEqual(message === null ? null : { level: 'warn', message });
});
