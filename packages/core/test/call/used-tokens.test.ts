import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { judgeOutcome } from '../../src/call/judge.ts';
import type { CallOutcome } from '../../src/call/outcome.ts';
import { countUsedTokens } from '../../src/call/used-tokens.ts';
import { parseExactJson } from '../../src/contracts/exact-json.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { aRequest } from '../routing/a-snapshot.ts';

interface Counted {
  readonly capability?: string;
  readonly input?: JsonObject;
  readonly hasBegun?: boolean;
}

const question = { messages: [{ role: 'user', content: 'x' }] };

function count(
  outcome: CallOutcome,
  { capability = 'model.fast', input = question, hasBegun = false }: Counted = {},
): number {
  const verdict = judgeOutcome(outcome, { countedBefore: 0, retryMax: 3, hasBegun });
  const route = { ...aRequest(), capability };
  return countUsedTokens({ route, input }, { outcome, verdict });
}

function answered(usage: unknown): CallOutcome {
  return { kind: 'answered', body: { text: 'x', usage } as JsonObject };
}

describe('an answer', () => {
  test.each([
    [{ input_tokens: 50, output_tokens: 150 }, 200],
    [{ input_tokens: 50, output_tokens: null }, 50],
    [{ input_tokens: -50, output_tokens: 10 }, 10],
    [{ input_tokens: 1, output_tokens: 1 }, 2],
    [{ input_tokens: 1 }, 1],
  ])('counts what its model reports: %j', (usage, tokens) => {
    const input = { ...question, max_output_tokens: 1_000 };
    expect(count(answered(usage), { input })).toBe(tokens);
    expect(count(answered(usage), { input, capability: 'video.describe' })).toBe(tokens);
  });

  test.each([{ input_tokens: '50' }, { input_tokens: 0, output_tokens: 0 }, [50], null, undefined])(
    'without a usable report (%j) counts its question and its text',
    (usage) => {
      const asked = Math.ceil(JSON.stringify(question).length / 2);
      const { body } = answered(usage) as { body: JsonObject };
      expect(count(answered(usage))).toBe(asked + Math.ceil(JSON.stringify(body).length / 2));
      expect(count(answered(usage), { capability: 'embed.x' })).toBe(asked);
      expect(count(answered(usage), { capability: 'video.describe' })).toBe(0);
    },
  );

  test.each([1e15, 1e308, Number.MAX_SAFE_INTEGER, parseExactJson('123456789012345678901') as number])(
    'counts at most what its input can need, whatever is reported: %s',
    (input_tokens) => {
      const usage = { input_tokens, output_tokens: 1 };
      const bytes = JSON.stringify({ ...question, max_output_tokens: 100 }).length;
      expect(count(answered(usage), { input: { ...question, max_output_tokens: 100 } })).toBe(bytes + 100);
      expect(count(answered(usage), { input: { ...question, max_output_tokens: 100, n: 3 } })).toBe(
        bytes + ',"n":3'.length + 300,
      );
      expect(count(answered(usage), { input: { ...question, max_output_tokens: 100, n: 999 } })).toBe(
        bytes + ',"n":999'.length + 12_800,
      );
      expect(count(answered(usage), { capability: 'embed.x', input: { texts: ['x'] } })).toBe(15);
      expect(count(answered(usage))).toBeLessThan(200_000);
    },
  );

  test('of a picture counts the picture, not the bytes of its data', () => {
    const picture = (url: string) => ({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      max_output_tokens: 1,
    });
    const usage = { input_tokens: 1e15 };
    const long = `data:image/png;base64,${'A'.repeat(1_000_000)}`;
    const counts = [long, 'https://x.test/a.png'].map((url) =>
      count(answered(usage), { input: picture(url) }),
    );
    expect(counts[0]).toBe(counts[1]);
    const rest = JSON.stringify({ messages: [{ role: 'user', content: [null] }], max_output_tokens: 1 });
    expect(counts[0]).toBe(rest.length + 131_072 + 1);
  });

  test('never counts more than it reports or its text has, nor less than nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.double({ noNaN: true }), fc.nat(), (content, inputs, outputs) => {
        const usage = { input_tokens: inputs, output_tokens: outputs };
        const input = { messages: content, n: inputs, max_output_tokens: outputs } as JsonObject;
        const counted = count(answered(usage), { input });
        expect(counted).toBeGreaterThanOrEqual(0);
        const text = Buffer.byteLength(JSON.stringify([input, answered(usage)])) + 4_096 * 100;
        expect(counted).toBeLessThanOrEqual(Math.max(0, inputs) + outputs || text);
      }),
    );
  });
});

const ends: readonly (readonly [CallOutcome, isCounted: boolean])[] = [
  [{ kind: 'cancelled' }, true],
  [{ kind: 'lost', message: 'reset' }, true],
  [{ kind: 'timeout', timeoutMs: 1 }, true],
  [{ kind: 'abandoned' }, true],
  [{ kind: 'output_invalid', message: 'no' }, true],
  [{ kind: 'too_large', limitBytes: 1 }, true],
  [{ kind: 'failed', status: 500, message: 'no' }, false],
  [{ kind: 'rejected', status: 422, message: 'no' }, false],
  [{ kind: 'malformed', message: 'no' }, true],
  [{ kind: 'overloaded', status: 429, retryAfterMs: null }, false],
  [{ kind: 'not_sent', message: 'refused' }, false],
  [{ kind: 'unsent' }, false],
  [{ kind: 'withheld' }, false],
];

describe('without an answer', () => {
  test.each(ends)('%j counts an estimate: %s', (outcome, isCounted) => {
    const estimate = Math.ceil(JSON.stringify(question).length / 2) + 4_096;
    expect(count(outcome)).toBe(isCounted ? estimate : 0);
    expect(count(outcome, { capability: 'video.join' })).toBe(0);
  });

  test.each<CallOutcome>([
    {
      kind: 'rejected',
      status: 422,
      message: 'no JSON',
      report: { usage: { input_tokens: 50, output_tokens: 4 } },
    },
    { kind: 'failed', status: 500, message: 'no', report: { usage: { input_tokens: 54 } } },
    { kind: 'overloaded', status: 429, retryAfterMs: null, report: { usage: { output_tokens: 54 } } },
    { kind: 'output_invalid', message: 'no', report: { usage: { input_tokens: 54 } } },
  ])('counts what the failure reports: %j', (outcome) => {
    expect(count(outcome)).toBe(54);
    expect(count(outcome, { hasBegun: true })).toBe(54);
  });

  test('a failure counts once parts of the answer have come', () => {
    const failed: CallOutcome = { kind: 'failed', status: 500, message: 'no' };
    expect(count(failed, { hasBegun: true, input: { ...question, max_output_tokens: 10 } })).toBe(
      Math.ceil(JSON.stringify({ ...question, max_output_tokens: 10 }).length / 2) + 10,
    );
  });
});
