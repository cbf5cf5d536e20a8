import type { Json } from '@capstan/core/contracts/primitives';
import { expect, it } from 'vitest';
import {
  mergeUsage,
  readAnthropicUsage,
  readOpenAiUsage,
  sumUsage,
  type Usage,
  withoutZeros,
} from '../src/models/usage.ts';

const none = { input_tokens: null, output_tokens: null };

it.each<[string, Json, Partial<Usage>]>([
  ['parts that add up', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }, {}],
  [
    'reasoning within the answer',
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      completion_tokens_details: { reasoning_tokens: 4 },
    },
    { reasoning_tokens: 4 },
  ],
  [
    'reasoning beside the answer',
    {
      prompt_tokens: 10,
      completion_tokens: 1,
      total_tokens: 397,
      completion_tokens_details: { reasoning_tokens: 386 },
    },
    { output_tokens: 387, reasoning_tokens: 386 },
  ],
  [
    'reasoning beside the answer, without a total',
    { prompt_tokens: 10, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: 386 } },
    { output_tokens: 387, reasoning_tokens: 386 },
  ],
  ['a larger total', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 100 }, { output_tokens: 90 }],
  ['a smaller total', { prompt_tokens: 10, completion_tokens: 5, total_tokens: 3 }, {}],
  ['no count of the answer', { prompt_tokens: 10, total_tokens: 15 }, {}],
  ['texts and fractions', { prompt_tokens: '10', completion_tokens: 4.2 }, {}],
  [
    'a cache',
    { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 9 } },
    { cached_read_tokens: 9 },
  ],
  ['nothing', null, none],
  ['something else', { prompt_tokens: -1, completion_tokens: 'many', total_tokens: [] }, none],
])('OpenAI counts %s', (_name, usage, expected) => {
  expect(readOpenAiUsage(usage)).toEqual({ input_tokens: 10, output_tokens: 5, ...expected });
});

it('Anthropic counts the tokens of its cache beside the question', () => {
  const usage = {
    input_tokens: 14,
    cache_read_input_tokens: 6_081,
    cache_creation_input_tokens: 5,
    output_tokens: 1,
  };
  const counted = { cached_read_tokens: 6_081, cached_write_tokens: 5 };
  expect(readAnthropicUsage(usage)).toEqual({ input_tokens: 6_100, output_tokens: 1, ...counted });
  const grown = mergeUsage(readAnthropicUsage(usage), readAnthropicUsage({ output_tokens: 12 }));
  expect(grown).toEqual({ input_tokens: 6_100, output_tokens: 12, ...counted });
});

it.each([
  [0, 0, false, none],
  [0, 0, true, { input_tokens: null, output_tokens: 0 }],
  [10, 0, false, { input_tokens: 10, output_tokens: null }],
  [0, 5, false, { input_tokens: null, output_tokens: 5 }],
  [10, 5, false, { input_tokens: 10, output_tokens: 5 }],
] as const)(
  '%i and %i tokens of an answer that is empty: %s',
  (input_tokens, output_tokens, isEmpty, expected) => {
    expect(withoutZeros({ input_tokens, output_tokens }, isEmpty)).toEqual(expected);
  },
);

it('the sum of several answers is unknown if the count of one answer is', () => {
  const one = { input_tokens: 1, output_tokens: 2, reasoning_tokens: 3 };
  expect(sumUsage([one, { input_tokens: 4, output_tokens: null }])).toEqual({
    input_tokens: 5,
    output_tokens: null,
    reasoning_tokens: 3,
  });
});
