/** The tokens of a translated answer, in the form of each protocol: each is counted once. */

import { expect, it } from 'vitest';
import { toMessage } from '../../src/model-protocols/anthropic.ts';
import { toCompletion } from '../../src/model-protocols/openai.ts';

const head = { id: 'a', created: 1, model: 'fast' };
const counted = {
  input_tokens: 1_000,
  output_tokens: 50,
  cached_read_tokens: 700,
  cached_write_tokens: 200,
  reasoning_tokens: 40,
};

it('OpenAI has parts of the totals in its details', () => {
  const { usage } = toCompletion(head, { text: 'a', usage: counted }, 0.5);
  expect(usage).toEqual({
    prompt_tokens: 1_000,
    completion_tokens: 50,
    total_tokens: 1_050,
    prompt_tokens_details: { cached_tokens: 700 },
    completion_tokens_details: { reasoning_tokens: 40 },
    cost_usd: 0.5,
  });
});

it.each([
  [counted, [100, 200, 700, 50]],
  [{ input_tokens: 1_000, output_tokens: 50 }, [1_000, 0, 0, 50]],
  [{ input_tokens: 5, output_tokens: 1, cached_read_tokens: 9 }, [0, 0, 9, 1]],
  [null, [0, 0, 0, 0]],
])('Anthropic has the tokens of a cache beside the question: %j', (usage, expected) => {
  const { usage: written } = toMessage({ id: 'a', model: 'fast' }, { text: 'a', usage }, 0.5);
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = written;
  expect([input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens]).toEqual(
    expected,
  );
});
