/** What is stored of a call: how it ended, what a model used, and its contents, cut where they are too long to keep. */
import { describe, expect, it, test } from 'vitest';
import { contentOf, outcomeOf, readUse } from '../../src/call/call-facts.ts';
import type { CallOutcome } from '../../src/call/outcome.ts';
import { ExactNumber, parseExactJson } from '../../src/contracts/exact-json.ts';

function answered(body: object): CallOutcome {
  return { kind: 'answered', body } as CallOutcome;
}

test.each([
  ['reserved', null, 'running'],
  ['dispatched', 'timeout', 'running'],
  ['cached', null, 'cached'],
  ['settled', null, 'succeeded'],
  ['released', 'run_cancelled', 'cancelled'],
  ['lost', 'delivery_unknown', 'failed'],
] as const)('an attempt that is %s with the error %s has %s', (state, error_code, outcome) => {
  expect(outcomeOf({ state, error_code })).toBe(outcome);
});

describe('the use of a call', () => {
  const usage = { input_tokens: 1.2, output_tokens: 0, cached_read_tokens: -1, reasoning_tokens: 1e13 };

  it('is read of models alone, whole, and as far as it is a count', () => {
    const body = answered({ model: 'real-1', usage });
    expect(readUse('model.large', body)).toEqual({ model: 'real-1', tokens: { input: 2, output: 0 } });
    expect(readUse('upscale', body)).toEqual({ model: null, tokens: null });
    expect(readUse('model.large', answered({ model: '', usage: {} }))).toEqual({ model: null, tokens: null });
    expect(readUse('model.large', { kind: 'abandoned' })).toEqual({ model: null, tokens: null });
  });

  it.each([
    [1e12, { input: 1e12 }],
    [1e12 + 1, null],
  ])('counts at most 1e12 tokens: %d', (input_tokens, tokens) => {
    expect(readUse('model.large', answered({ usage: { input_tokens } })).tokens).toEqual(tokens);
  });

  it('has every class of tokens, also as a number that JavaScript does not hold', () => {
    const counts = '"cached_read_tokens":3,"cached_write_tokens":4,"reasoning_tokens":5';
    const body = parseExactJson(
      `{"usage":{"input_tokens":1.00000000000000000001,"output_tokens":2,${counts}}}`,
    ) as object;
    expect(readUse('model.large', answered(body)).tokens).toEqual({
      input: 1,
      output: 2,
      cached_read: 3,
      cached_write: 4,
      reasoning: 5,
    });
  });

  it('keeps 256 characters of a name', () => {
    expect(readUse('model.large', answered({ model: 'm'.repeat(300) })).model?.length).toBeLessThanOrEqual(
      256,
    );
  });
});

describe('kept contents', () => {
  const long = 'x'.repeat(100_000);

  it('stay whole while they are short, with the events of a stream', () => {
    const { input, output } = contentOf({ n: [1, { text: 'a' }] }, answered({ text: 'b' }), 'data: 1\n\n');
    expect([input, output]).toEqual([{ n: [1, { text: 'a' }] }, { text: 'b', events: 'data: 1\n\n' }]);
    expect(contentOf({}, { kind: 'abandoned' }, 'data: 1\n\n').output).toBeNull();
  });

  it('stay whole up to 131,072 bytes of JSON, with texts of any length', () => {
    const sizes = [131_072, 131_073].map((bytes) => 'x'.repeat(bytes - JSON.stringify({ text: '' }).length));
    const lengths = sizes.map(
      (text) => (contentOf({ text }, answered({}), null).input as { text: string }).text.length,
    );
    expect(lengths[0]).toBe(sizes[0]?.length);
    expect(lengths[1]).toBeLessThan(33_000);
  });

  it('lose the ends of their longest texts, at any depth, and name how much', () => {
    const { input } = contentOf({ list: [long, { text: long }], short: 'kept', n: 1 }, answered({}), null);
    const { list, ...others } = input as { list: [string, { text: string }]; short: string; n: number };
    for (const cut of [list[0], list[1].text]) {
      expect(cut.endsWith(' (67232 more characters)')).toBe(true);
      expect(cut.length).toBeLessThan(32_768 + 40);
    }
    expect(others).toEqual({ short: 'kept', n: 1 });
  });

  it('lose no text of the length that is kept, and cut one that is longer by a character', () => {
    const texts = [32_768, 32_769].map((length) => 'y'.repeat(length));
    const { input } = contentOf({ texts, filler: long }, answered({}), null);
    const [whole, cut] = (input as { texts: string[] }).texts;
    expect([whole?.length, cut?.endsWith('… (1 more characters)')]).toEqual([32_768, true]);
  });

  it.each([
    [4, 40_000, 8_191],
    [16, 9_000, 2_047],
    [64, 3_000, 511],
    [800, 600, 127],
  ])('lose more of each text where there are many: %i of %i characters keep %i', (count, length, kept) => {
    const list = Array.from({ length: count }, () => 'z'.repeat(length));
    const { input } = contentOf({ list }, answered({}), null);
    expect((input as { list: string[] }).list[0]?.indexOf('…')).toBe(kept);
  });

  it('keep numbers as they were written', () => {
    const body = parseExactJson(`{"long":"${long}${long}","n":12345678901234567890}`) as { n: unknown };
    expect(body.n).toBeInstanceOf(ExactNumber);
    expect((contentOf({}, answered(body), null).output as { n: unknown }).n).toBe(body.n);
  });

  it('are left out where even short texts are too many', () => {
    const many = { list: Array.from({ length: 30_000 }, () => 'none') };
    expect(contentOf(many, answered({}), null).input).toMatch(/^\d+ bytes, which are not kept$/);
  });
});
