/** Events of a provider on their way to a client, however their text is cut. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { measureExcessMs } from '../../../test/support/linear-time.ts';
import { createEventPasser } from '../src/models/native/events.ts';

function pass(pieces: readonly string[], hidesUsage: boolean): readonly string[] {
  const told: string[] = [];
  const passer = createEventPasser(hidesUsage, (events) => told.push(events));
  for (const piece of pieces) passer.take(piece);
  passer.end();
  return told;
}

function cut(text: string, size: number): readonly string[] {
  return text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? [];
}

const Event = fc.record({
  lines: fc.array(
    fc.constantFrom(
      'data: {"a":1}',
      'data: x',
      ': y',
      'event: z',
      'data: {"usage":null}',
      'data: é 😀',
      'data: {"type":"response.failed","response":{"error":null}}',
    ),
    { minLength: 1, maxLength: 3 },
  ),
  hidden: fc.constantFrom(
    null,
    'data: {"choices":[],"usage":{"prompt_tokens":1}}',
    'data: {"choices":null,"usage":{"prompt_tokens":1}}',
    'data: {"usage":{"prompt_tokens":1}}',
    'event: response.failed\ndata: {"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}',
    'data: {"error":{"message":"m"}}',
    'event: error\ndata: m',
  ),
});

test('are passed on but for errors and counts, wherever they are cut and however their lines end', () => {
  const end = fc.constantFrom('\n', '\r\n', '\r');
  fc.assert(
    fc.property(
      fc.array(Event, { maxLength: 6 }),
      end,
      fc.integer({ min: 1, max: 40 }),
      (events, eol, size) => {
        const write = (text: string): string => `${text.replaceAll('\n', eol)}${eol}${eol}`;
        const all = events.map(({ lines, hidden }) => ({
          shown: write(lines.join('\n')),
          left: hidden === null ? '' : write(hidden),
        }));
        const whole = all.map(({ shown, left }) => left + shown).join('');
        const expected = all.map(({ shown }) => shown).join('');
        expect(pass(cut(whole, size), true).join('')).toBe(expected);
        expect(pass([whole], true).join('')).toBe(expected);
      },
    ),
  );
});

test.each([1, 61])('one that is long takes linear time in pieces of %i characters', (size) => {
  const act = (text: string) => void pass(cut(`data: "${text}"\n\n`, size), true);
  const make = (length: number) => '漢é😀'.repeat(length / 4);
  expect(measureExcessMs(act, make, { length: 800_000, limitMs: 3_000 })).toBe(0);
});
