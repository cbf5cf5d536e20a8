import type { Json } from '@capstan/core/contracts/primitives';
import { expect, it } from 'vitest';
import {
  laterUsage,
  mergeUsage,
  readAnthropicUsage,
  readOpenAiUsage,
  sumUsage,
  type Usage,
  withoutZeros,
} from '../src/models/money/usage.ts';

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
  [
    'a cache beside the question',
    { prompt_tokens: 1, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 9 } },
    { cached_read_tokens: 9 },
  ],
  [
    'a cache beside the question, by the total',
    { prompt_tokens: 6, completion_tokens: 5, total_tokens: 15, prompt_tokens_details: { cached_tokens: 4 } },
    { cached_read_tokens: 4 },
  ],
  [
    'what it had in its cache and what it had not (DeepSeek)',
    { completion_tokens: 5, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 2 },
    { cached_read_tokens: 8 },
  ],
  [
    'two reports of its cache that differ',
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_cache_hit_tokens: 3,
      cached_tokens: 9,
      prompt_tokens_details: { cached_tokens: 0 },
    },
    { cached_read_tokens: 3 },
  ],
  [
    'writes to its cache',
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: '7' },
    },
    { cached_read_tokens: 2, cached_write_tokens: 7 },
  ],
  [
    'sound and pictures, of more than the total',
    {
      prompt_tokens: 7,
      prompt_tokens_details: { text_tokens: 1, audio_tokens: 4, image_tokens: 5 },
      completion_tokens: 5,
      completion_tokens_details: { audio_tokens: 2, image_tokens: 3 },
    },
    { input_audio_tokens: 4, input_image_tokens: 5, output_audio_tokens: 2, output_image_tokens: 3 },
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

it('Anthropic reports how long tokens stay in its cache, and which ones are thoughts', () => {
  const cache_creation = { ephemeral_5m_input_tokens: 30, ephemeral_1h_input_tokens: 40 };
  const output_tokens_details = { thinking_tokens: 9 };
  const usage = { input_tokens: 14, cache_creation, output_tokens: 12, output_tokens_details };
  expect(readAnthropicUsage(usage)).toEqual({
    input_tokens: 84,
    cached_write_tokens: 70,
    cached_write_1h_tokens: 40,
    output_tokens: 12,
    reasoning_tokens: 9,
  });
  expect(readAnthropicUsage({ ...usage, cache_creation_input_tokens: 75 }).cached_write_tokens).toBe(75);
});

it('the last report of an answer counts, unless it counts nothing', () => {
  const one = readOpenAiUsage({ prompt_tokens: 10, completion_tokens: 1 });
  const two = readOpenAiUsage({ prompt_tokens: 10, completion_tokens: 7 });
  const zeros = readOpenAiUsage({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });
  expect([one, two, zeros, none].reduce(laterUsage)).toEqual({ input_tokens: 10, output_tokens: 7 });
  expect([two, one].reduce(laterUsage)).toEqual(one);
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
