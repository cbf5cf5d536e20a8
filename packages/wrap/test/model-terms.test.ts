import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyText } from '../../../test/support/any-text.ts';
import { runs } from '../../../test/support/runs.ts';
import { defineModel, type ModelFile } from '../../../test/support/wrapped-models.ts';

const url = 'http://127.0.0.1:11434/v1';
const cost = { type: 'per_call', rate_usd: 0.2 };
const prices = { input: 3, output: 15 };
const priced = { file: { cost }, part: { prices } };

function declare(more: Partial<ModelFile>) {
  return defineModel({ url, ...more }).cost_model;
}

const schema = '((input.response_schema | json | tokens) + 40 ?? 0)';
const tools = '((input.tools | json | tokens) + 600 ?? 0)';
const question = `(input.most_input_tokens ?? (input.messages | tokens) + ${schema} + ${tools})`;

it.each<[name: string, model: Partial<ModelFile>, worst_case: string | undefined]>([
  [
    'prices',
    priced,
    `{{ (input.n ?? 1) * (${question} * 0.000003 + (input.max_output_tokens ?? 4096) * 0.000015) }}`,
  ],
  [
    'another limit of the output',
    { ...priced, part: { prices, max_output_tokens: 500 } },
    `{{ (input.n ?? 1) * (${question} * 0.000003 + (input.max_output_tokens ?? 500) * 0.000015) }}`,
  ],
  [
    'images that count twice as much',
    { ...priced, part: { prices, image_tokens: 8_192 } },
    `{{ (input.n ?? 1) * (${question} * 0.000006 + (input.max_output_tokens ?? 4096) * 0.000015) }}`,
  ],
  [
    'embeddings',
    { ...priced, name: 'embed.small', part: { prices: { input: 3 } } },
    '{{ (input.texts | tokens) * 0.000003 }}',
  ],
  ['a price a call only', { file: { cost } }, undefined],
  ['no price', {}, undefined],
])('a model with %s declares its worst case', (_, model, worst_case) => {
  expect(declare(model).worst_case).toBe(worst_case);
});

it('that stops declares how the cost of an answer grows, if it comes in parts', () => {
  const grows = {
    start: `{{ (input.n ?? 1) * (${question} * 0.000003) }}`,
    per_token: '{{ 0.000015 }}',
  };
  const file = { cost, stops: true };
  expect(declare({ file, part: { prices } })).toMatchObject(grows);
  expect(declare(priced).per_token).toBeUndefined();
  expect(declare({ file, part: { prices, settings: { stream: null } } }).per_token).toBeUndefined();
});

it('covers a question in text, and images', () => {
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  const content = [{ type: 'text', text: 'word '.repeat(100) }, image, image];
  const input = { messages: [{ role: 'user', content }], max_output_tokens: 100 };
  const usd = createCostOfInput(input)(
    declare({ ...priced, part: { prices, image_tokens: 8_192 } }).worst_case ?? '',
  );
  expect(usd).toBeGreaterThan((125 + 2 * 8_192) * 0.000_003 + 100 * 0.000_015);
});

/** A model that makes a token of each byte, as some do of rare signs. */
function tokensOf(...texts: readonly unknown[]): number {
  return Buffer.byteLength(
    texts.map((text) => (typeof text === 'string' ? text : JSON.stringify(text))).join(''),
  );
}

it('covers any text, in any script and in base64, of question, tools and schema, times the answers asked for', () => {
  const worst_case = declare(priced).worst_case ?? '';
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

it.each<[string, Partial<ModelFile>, RegExp]>([
  ['one price of two', { file: { cost }, part: { prices: { input: 1 } } }, /prices\/output/],
  ['prices, but free', { part: { prices } }, /^\/cost: rate_usd is 0, but 4096 output tokens cost 0\.06144/],
  [
    'a price below its output',
    { file: { cost: { ...cost, rate_usd: 0.04 } }, part: { prices } },
    /but 4096 output tokens cost 0\.06144; it is the most/,
  ],
  [
    'prices and a list of measures',
    { file: { cost: { ...cost, measured: [{ value: 1, rate_usd: 1 }] } }, part: { prices } },
    /^\/cost\/measured: .*not by both/,
  ],
  ['a password in the address', { url: 'http://u:p@host/v1' }, /without user and password/],
  ['embeddings of Anthropic', { kind: 'anthropic', part: { endpoint: 'embeddings' } }, /endpoint/],
  ['an output price of embeddings', { name: 'embed.a', file: { cost }, part: { prices } }, /output/],
])('a file is refused with %s', (_, model, message) => {
  expect(() => declare(model)).toThrow(message);
});
