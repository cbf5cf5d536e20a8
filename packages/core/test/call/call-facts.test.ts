/** What is stored of a call: how it ended, what a model used, and its contents, cut where they are too long to keep. */
import { describe, expect, it, test } from 'vitest';
import { contentOf, outcomeOf, readUse } from '../../src/call/call-facts.ts';
import type { CallOutcome } from '../../src/call/outcome.ts';

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

  it('lose the ends of their longest texts, at any depth, and name how much', () => {
    const { input } = contentOf({ list: [long, { text: long }], short: 'kept', n: 1 }, answered({}), null);
    const { list, ...others } = input as { list: [string, { text: string }]; short: string; n: number };
    for (const cut of [list[0], list[1].text]) {
      expect(cut.endsWith(' (67232 more characters)')).toBe(true);
      expect(cut.length).toBeLessThan(32_768 + 40);
    }
    expect(others).toEqual({ short: 'kept', n: 1 });
  });

  it('are left out where even short texts are too many', () => {
    const many = { list: Array.from({ length: 100_000 }, (_, at) => at) };
    expect(contentOf(many, answered({}), null).input).toMatch(/^\d+ bytes, which are not kept$/);
  });
});
