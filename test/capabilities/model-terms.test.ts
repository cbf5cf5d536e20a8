import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readModelSettings } from '../../capabilities/model/configuration.ts';
import { declareTerms } from '../../capabilities/model/terms.ts';
import { anyText } from '../support/any-text.ts';
import { runs } from '../support/runs.ts';

const openai = {
  MODEL_PROVIDER: 'openai-compatible',
  MODEL_BASE_URL: 'http://127.0.0.1:11434/v1',
  MODEL_NAME: 'small',
};
const prices = { MODEL_RATE_USD: '0.2', MODEL_USD_PER_MTOK_IN: '3', MODEL_USD_PER_MTOK_OUT: '15' };

function declare(more: Record<string, string>) {
  return declareTerms(readModelSettings({ ...openai, ...more })).cost_model;
}

const schema = '((input.response_schema | json | tokens) + 40 ?? 0)';
const tools = '((input.tools | json | tokens) + 600 ?? 0)';
const question = `((input.messages | tokens) + ${schema} + ${tools})`;

it.each<[name: string, settings: Record<string, string>, worst_case: string | undefined]>([
  [
    'prices',
    prices,
    `{{ (input.n ?? 1) * (${question} * 0.000003 + (input.max_output_tokens ?? 4096) * 0.000015) }}`,
  ],
  [
    'another limit of the output',
    { ...prices, MODEL_MAX_OUTPUT_TOKENS: '500' },
    `{{ (input.n ?? 1) * (${question} * 0.000003 + (input.max_output_tokens ?? 500) * 0.000015) }}`,
  ],
  [
    'images that count twice as much',
    { ...prices, MODEL_IMAGE_TOKENS: '8192' },
    `{{ (input.n ?? 1) * (${question} * 0.000006 + (input.max_output_tokens ?? 4096) * 0.000015) }}`,
  ],
  [
    'embeddings',
    { ...prices, MODEL_CAPABILITY: 'embed.small', MODEL_USD_PER_MTOK_OUT: '0' },
    '{{ (input.texts | tokens) * 0.000003 }}',
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

/** A model that makes a token of each byte, as some do of rare signs. */
function tokensOf(...texts: readonly unknown[]): number {
  return Buffer.byteLength(
    texts.map((text) => (typeof text === 'string' ? text : JSON.stringify(text))).join(''),
  );
}

it('covers any text, in any script and in base64, of question, tools and schema, times the answers asked for', () => {
  const worst_case = declare(prices).worst_case ?? '';
  const scripts = fc.constantFrom(
    'word ',
    '机器学习',
    '\u{13000}',
    'བོད་',
    Buffer.from('seed').toString('base64'),
    '👩‍🚀',
  );
  const text = fc.oneof(
    anyText(),
    fc.tuple(scripts, fc.integer({ min: 1, max: 200 })).map(([s, n]) => s.repeat(n)),
  );
  const messages = fc.array(text, { minLength: 1, maxLength: 5 });
  /** Keys that mean an image in a message. */
  const parameters = fc.record({
    type: fc.constantFrom('object', 'image', 'file'),
    url: text,
    description: text,
  });
  const tools = fc.option(fc.array(fc.record({ name: fc.constant('a'), parameters }), { maxLength: 3 }), {
    nil: undefined,
  });
  const response_schema = fc.option(parameters, { nil: undefined });
  const counts = fc.record({
    n: fc.integer({ min: 1, max: 8 }),
    max_output_tokens: fc.integer({ min: 1, max: 9_000 }),
  });
  fc.assert(
    fc.property(
      messages,
      tools,
      response_schema,
      counts,
      (texts, offered, form, { n, max_output_tokens }) => {
        const input = {
          messages: texts.map((content) => ({ role: 'user', content })),
          ...(offered === undefined ? {} : { tools: offered }),
          ...(form === undefined ? {} : { response_schema: form }),
          ...(n === 1 ? {} : { n }),
          max_output_tokens,
        };
        const inputTokens = tokensOf(...texts, offered ?? '', form ?? '');
        const usd = n * (inputTokens * 0.000_003 + max_output_tokens * 0.000_015);
        expect(createCostOfInput(input)(worst_case)).toBeGreaterThanOrEqual(Number(usd.toFixed(11)));
      },
    ),
    { numRuns: runs(200) },
  );
});
