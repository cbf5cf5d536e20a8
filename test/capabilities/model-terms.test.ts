import { expect, it } from 'vitest';
import { readModelSettings } from '../../capabilities/model/configuration.ts';
import { declareTerms } from '../../capabilities/model/terms.ts';
import { createCostOfInput } from '../../src/core/routing/call-bound.ts';

const openai = {
  MODEL_PROVIDER: 'openai-compatible',
  MODEL_BASE_URL: 'http://127.0.0.1:11434/v1',
  MODEL_NAME: 'small',
};
const prices = { MODEL_RATE_USD: '0.2', MODEL_USD_PER_MTOK_IN: '3', MODEL_USD_PER_MTOK_OUT: '15' };

function declare(more: Record<string, string>) {
  return declareTerms(readModelSettings({ ...openai, ...more })).cost_model;
}

it.each<[name: string, settings: Record<string, string>, worst_case: string | undefined]>([
  ['prices', prices, '{{ (input | tokens) * 0.000003 + (input.max_output_tokens ?? 4096) * 0.000015 }}'],
  [
    'another limit of the output',
    { ...prices, MODEL_MAX_OUTPUT_TOKENS: '500' },
    '{{ (input | tokens) * 0.000003 + (input.max_output_tokens ?? 500) * 0.000015 }}',
  ],
  [
    'images that count twice as much',
    { ...prices, MODEL_IMAGE_TOKENS: '8192' },
    '{{ (input | tokens) * 0.000006 + (input.max_output_tokens ?? 4096) * 0.000015 }}',
  ],
  [
    'embeddings',
    { ...prices, MODEL_CAPABILITY: 'embed.small', MODEL_USD_PER_MTOK_OUT: '0' },
    '{{ (input | tokens) * 0.000003 }}',
  ],
  ['a price a call only', { MODEL_RATE_USD: '0.2' }, undefined],
  ['no price', {}, undefined],
])('a model with %s declares its worst case', (_, settings, worst_case) => {
  expect(declare(settings).worst_case).toBe(worst_case);
});

it('covers a question in text, and images', () => {
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  const content = [{ type: 'text', text: 'word '.repeat(100) }, image, image];
  const input = { messages: [{ role: 'user', content }], max_output_tokens: 100 };
  const usd = createCostOfInput(input)(declare({ ...prices, MODEL_IMAGE_TOKENS: '8192' }).worst_case ?? '');
  expect(usd).toBeGreaterThan((125 + 2 * 8_192) * 0.000_003 + 100 * 0.000_015);
});
