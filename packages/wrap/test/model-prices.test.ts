/** Each token costs the price of its class, of the length of its question and of its date, and is counted once. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import { toNanoUsd } from '@capstan/core/money/nano-usd';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { defineModel } from '../../../test/support/wrapped-models.ts';
import {
  answerClasses,
  askedCache,
  costOfUsage,
  ownCache,
  questionClasses,
  ratesAt,
  type StatedPeriod,
  splitUsage,
  type TokenClass,
  toPrices,
} from '../src/models/money/prices.ts';
import { readAnthropicUsage, readOpenAiUsage, readResponsesUsage } from '../src/models/money/usage.ts';
import { type ModelLevel, schema, startModelLevel, user } from './model-level.ts';

const day = (text: string): number => Date.parse(text);
const now = day('2026-11-28');

afterEach(() => {
  vi.useRealTimers();
});

const sonnet: StatedPeriod = {
  input: 3,
  output: 15,
  cached_read: 0.3,
  cached_write: 3.75,
  cached_write_1h: 6,
};
const flash: StatedPeriod = { input: 0.3, output: 2.5, cached_read: 0.03, input_audio: 1, output_image: 30 };
const longer = { input: 6, output: 22.5, cached_read: 0.6, cached_write: 7.5, cached_write_1h: 12 };
const long = { ...sonnet, above: [{ tokens: 200_000, ...longer }] };
const dated = [
  { input: 1, output: 2 },
  { from: '2026-12-01', input: 2, output: 4 },
  { from: '2027-01-01T08:00:00+01:00', input: 0.5, output: 1 },
];

describe('an answer costs', () => {
  const chat = (usage: Json) => readOpenAiUsage(usage);
  it.each<[string, StatedPeriod | StatedPeriod[], ReturnType<typeof chat>, nano: number, at?: number]>([
    [
      'less for what was in a cache',
      sonnet,
      chat({ prompt_tokens: 1_000, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 900 } }),
      100 * 3_000 + 900 * 300 + 10 * 15_000,
    ],
    [
      'less for what DeepSeek had in its cache',
      sonnet,
      chat({
        prompt_tokens: 1_000,
        completion_tokens: 10,
        prompt_cache_hit_tokens: 900,
        prompt_cache_miss_tokens: 100,
      }),
      100 * 3_000 + 900 * 300 + 10 * 15_000,
    ],
    [
      'more for what was put into a cache, by how long it stays there',
      sonnet,
      readAnthropicUsage({
        input_tokens: 10,
        cache_read_input_tokens: 5_000,
        cache_creation_input_tokens: 700,
        cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 400 },
        output_tokens: 20,
      }),
      10 * 3_000 + 5_000 * 300 + 300 * 3_750 + 400 * 6_000 + 20 * 15_000,
    ],
    [
      'what Anthropic takes for writes, where only two prices are stated',
      { input: 3, output: 15 },
      readAnthropicUsage({
        input_tokens: 10,
        cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 400 },
        output_tokens: 20,
      }),
      10 * 3_000 + 300 * 3_750 + 400 * 6_000 + 20 * 15_000,
    ],
    [
      'the price of thoughts for thoughts',
      { input: 1, output: 2, reasoning: 5 },
      readResponsesUsage({
        input_tokens: 7,
        output_tokens: 100,
        output_tokens_details: { reasoning_tokens: 90 },
      }),
      7 * 1_000 + 10 * 2_000 + 90 * 5_000,
    ],
    [
      'the prices of sound and pictures',
      flash,
      chat({
        prompt_tokens: 400,
        prompt_tokens_details: { audio_tokens: 300, cached_tokens: 50 },
        completion_tokens: 1_300,
        completion_tokens_details: { image_tokens: 1_290 },
      }),
      300 * 1_000 + 50 * 30 + 50 * 300 + 1_290 * 30_000 + 10 * 2_500,
    ],
    [
      'the usual price up to the limit',
      long,
      chat({
        prompt_tokens: 200_000,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens: 199_999 },
      }),
      3_000 + 199_999 * 300 + 15_000,
    ],
    [
      'another price for all of its tokens above the limit',
      long,
      chat({
        prompt_tokens: 200_001,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens: 200_000 },
      }),
      6_000 + 200_000 * 600 + 22_500,
    ],
    ['the first price before all dates', dated, chat({ prompt_tokens: 3, completion_tokens: 1 }), 5_000, 0],
    [
      'the price of the day before a change',
      dated,
      chat({ prompt_tokens: 3, completion_tokens: 1 }),
      5_000,
      day('2026-12-01') - 1,
    ],
    [
      'the new price from its date on',
      dated,
      chat({ prompt_tokens: 3, completion_tokens: 1 }),
      10_000,
      day('2026-12-01'),
    ],
    [
      'the new price from a moment on',
      dated,
      chat({ prompt_tokens: 3, completion_tokens: 1 }),
      2_500,
      day('2027-01-01T07:00:00Z'),
    ],
    [
      'a nano-USD for a part of one',
      { input: 0.0375, output: 0 },
      chat({ prompt_tokens: 1, completion_tokens: 1 }),
      38,
    ],
  ])('%s', (_, stated, usage, nano, at = now) => {
    const usd = costOfUsage(toPrices(stated, askedCache), [usage], at);
    expect(usd).not.toBeNull();
    expect(toNanoUsd(usd as number)).toBe(BigInt(nano));
  });

  it('the tier of each request, and never that of several together', () => {
    const usage = { input_tokens: 150_000, output_tokens: 10 };
    expect(costOfUsage(toPrices(long, askedCache), [usage, usage], now)).toBe(2 * (0.45 + 0.00015));
  });

  it.each([
    [null, 1],
    [1, null],
  ])('something unknown for unknown counts: %j and %j', (input_tokens, output_tokens) => {
    expect(costOfUsage(toPrices(sonnet, ownCache), [{ input_tokens, output_tokens }], now)).toBeNull();
  });
});

const count = fc.oneof(fc.nat(20), fc.nat(400_000));
const some = fc.option(count, { nil: undefined });
const usages = fc
  .record({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: some,
    prompt_cache_hit_tokens: some,
    prompt_tokens_details: fc.record({
      cached_tokens: some,
      cache_write_tokens: some,
      audio_tokens: some,
      image_tokens: some,
    }),
    completion_tokens_details: fc.record({ reasoning_tokens: some, audio_tokens: some, image_tokens: some }),
  })
  .map((usage) => readOpenAiUsage(JSON.parse(JSON.stringify(usage)) as Json));
const hours = fc
  .record({
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: some,
    cache_creation_input_tokens: some,
    cache_creation: fc.record({ ephemeral_5m_input_tokens: some, ephemeral_1h_input_tokens: some }),
  })
  .map((usage) => readAnthropicUsage(JSON.parse(JSON.stringify(usage)) as Json));
const anyUsage = fc.oneof(usages, hours);

const rate = fc.integer({ min: 0, max: 400 }).map((eighths) => eighths / 8);
const rates = fc.record(
  {
    input: rate,
    output: rate,
    ...Object.fromEntries(
      [...questionClasses, ...answerClasses]
        .filter((name) => name !== 'input' && name !== 'output')
        .map((name) => [name, rate]),
    ),
  },
  { requiredKeys: ['input', 'output'] },
) as fc.Arbitrary<StatedPeriod>;
const period = fc
  .tuple(
    rates,
    fc.uniqueArray(
      fc.tuple(fc.integer({ min: 1, max: 300_000 }), rates).map(([tokens, of]) => ({ ...of, tokens })),
      { maxLength: 3, selector: ({ tokens }) => tokens },
    ),
  )
  .map(([of, above]): StatedPeriod => (above.length === 0 ? of : { ...of, above }));
const listed = fc
  .tuple(period, fc.array(fc.tuple(fc.constantFrom('2026-11-01', '2026-11-29', '2027-03-01'), period)))
  .map(([first, others]) => [first, ...others.map(([from, one]): StatedPeriod => ({ ...one, from }))]);

it('every token is in one class, whatever a provider reports', () => {
  fc.assert(
    fc.property(anyUsage, (usage) => {
      const classes = splitUsage(usage);
      const sum = (names: readonly TokenClass[]) =>
        names.reduce((all, name) => all + (classes?.[name] ?? 0), 0);
      expect(sum(questionClasses)).toBe(usage.input_tokens);
      expect(sum(answerClasses)).toBe(usage.output_tokens);
      expect(Math.min(...Object.values(classes ?? {}))).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: runs(500) },
  );
});

it('costs the exact sum, rounded up once', () => {
  fc.assert(
    fc.property(
      anyUsage,
      listed,
      fc.constantFrom(now, day('2026-12-24'), day('2030-01-01')),
      (usage, all, at) => {
        const prices = toPrices(all, ownCache);
        const classes = Object.entries(splitUsage(usage) ?? {}) as [TokenClass, number][];
        const of = ratesAt(prices, usage.input_tokens ?? 0, at);
        // Eighths of a USD per million tokens are whole pico-USD per token.
        const pico = classes.reduce(
          (sum, [name, tokens]) => sum + BigInt(of[name] * 1e6) * BigInt(tokens),
          0n,
        );
        expect(toNanoUsd(costOfUsage(prices, [usage], at) ?? Number.NaN)).toBe((pico + 999n) / 1_000n);
      },
    ),
    { numRuns: runs(300) },
  );
});

describe('the declared worst case', () => {
  it.each([
    ['openai', ownCache],
    ['anthropic', askedCache],
  ] as const)('of kind %s covers every class, tier and date to come', (kind, cache) => {
    vi.useFakeTimers({ toFake: ['Date'], now });
    const asked = fc.record({
      way: fc.constantFrom('native', 'translated'),
      question: fc.integer({ min: 1, max: 320_000 }),
      answer: fc.integer({ min: 1, max: 9_000 }),
      n: fc.integer({ min: 1, max: 8 }),
      at: fc.constantFrom(now, day('2026-11-29'), day('2028-01-01')),
      classes: fc.record({
        cached_read_tokens: count,
        cached_write_tokens: count,
        cached_write_1h_tokens: count,
        input_audio_tokens: count,
        reasoning_tokens: count,
        output_audio_tokens: count,
      }),
    });
    fc.assert(
      fc.property(listed, asked, (stated, { way, question, answer, n, at, classes }) => {
        const file = { cost: { type: 'per_call', rate_usd: 10_000 } };
        const part = { prices: stated, max_output_tokens: 9_000 };
        const { worst_case } = defineModel({ url: 'http://127.0.0.1/v1', kind, file, part }).cost_model;
        const prices = toPrices(stated, cache);
        const { cached_write_1h_tokens: hour, ...others } = classes;
        const unasked = kind === 'anthropic' ? { ...others, cached_write_tokens: 0 } : others;
        const usage = {
          input_tokens: question,
          output_tokens: answer,
          ...(way === 'native' ? { ...others, cached_write_1h_tokens: hour } : unasked),
        };
        const input: JsonObject =
          way === 'native'
            ? { protocol: 'openai.chat', request: '{}', most_input_tokens: question }
            : { messages: 'x'.repeat(question) };
        const most = createCostOfInput({ ...input, n, max_output_tokens: answer })(worst_case ?? '{{ 0 }}');
        const cost =
          costOfUsage(
            prices,
            Array.from({ length: n }, () => usage),
            at,
          ) ?? Number.NaN;
        // Sums of doubles, of which the reservation is rounded up.
        expect((most as number) * (1 + 1e-12) + 1e-9).toBeGreaterThanOrEqual(cost);
      }),
      { numRuns: runs(300) },
    );
  });

  it('does not count a tier that the question cannot reach', () => {
    vi.useFakeTimers({ toFake: ['Date'], now });
    const file = { cost: { type: 'per_call', rate_usd: 10 } };
    const model = { url: 'http://127.0.0.1/v1', file, part: { prices: long } };
    const { worst_case = '' } = defineModel(model).cost_model;
    const most = (most_input_tokens: number) =>
      createCostOfInput({ most_input_tokens, max_output_tokens: 1_000 })(worst_case);
    expect(most(200_000)).toBeCloseTo(200_000 * 6e-6 + 0.0225, 9);
    expect(most(200_001)).toBeCloseTo(200_001 * 12e-6 + 0.0225, 9);
  });
});

describe('an instance', () => {
  let level: ModelLevel;
  beforeAll(async () => {
    level = await startModelLevel();
  });
  afterAll(() => level.close());

  const cost = { type: 'per_call', rate_usd: 5 };
  const told = (usage: object, text = '{"rate": 1}') => ({
    garbage: JSON.stringify({ choices: [{ message: { content: text }, finish_reason: 'stop' }], usage }),
    contentType: 'application/json',
  });
  const cached = {
    prompt_tokens: 1_000,
    completion_tokens: 10,
    prompt_tokens_details: { cached_tokens: 900 },
  };
  const costOfCached = (100 * 3 + 900 * 0.3 + 150) / 1e6;

  it('charges what was in a cache at its price, translated and as it came', async () => {
    const target = await level.start({ file: { cost }, part: { prices: sonnet } });
    const native = {
      protocol: 'openai.chat',
      request: '{"messages":[{"role":"user","content":"hi"}]}',
      most_input_tokens: 50,
    };
    for (const input of [user('hi'), native]) {
      const { body } = await level.ask(input, told(cached), target);
      expect(body).toMatchObject({
        ok: true,
        output: { usage: { input_tokens: 1_000, cached_read_tokens: 900 }, cost_usd: costOfCached },
      });
    }
  });

  it('charges an answer that it refuses in the same way', async () => {
    const target = await level.start({ file: { cost }, part: { prices: sonnet } });
    const { status, body } = await level.ask(
      { ...user('hi'), response_schema: schema },
      told(cached, 'no JSON'),
      target,
    );
    expect(status).toBe(422);
    expect(body).toMatchObject({ cost_usd: costOfCached });
  });

  it('charges each of several answers at its own tier, also when one is refused', async () => {
    const target = await level.start({ file: { cost }, part: { prices: long } });
    level.provider.answer(() => told({ prompt_tokens: 150_000, completion_tokens: 10 }));
    const ask = async (input: object) => {
      const response = await fetch(`${target.endpoint}/exec`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...user('hi'), n: 2, ...input }),
      });
      return (await response.json()) as { output?: { cost_usd: number }; cost_usd?: number };
    };
    const expected = 2 * (150_000 * 3 + 150) * 1e-6;
    expect((await ask({})).output?.cost_usd).toBe(expected);
    const strict = { ...schema, properties: { rate: { type: 'string' } } };
    expect((await ask({ response_schema: strict })).cost_usd).toBe(expected);
  });

  it('charges by the date of the call', async () => {
    const target = await level.start({ file: { cost }, part: { prices: dated } });
    vi.useFakeTimers({ toFake: ['Date'], now: day('2026-12-02') });
    const { body } = await level.ask(user('hi'), told({ prompt_tokens: 3, completion_tokens: 1 }), target);
    expect(body).toMatchObject({ output: { cost_usd: 10e-6 } });
  });
});

it.each<[string, object, RegExp]>([
  [
    'a tier without its output',
    { input: 1, output: 2, above: [{ tokens: 10, input: 2 }] },
    /above\/0\/output/,
  ],
  ['a date that is none', [{ input: 1, output: 2, from: 'soon' }], /0\/from: expected a date/],
  ['an unknown class', { input: 1, output: 2, thoughts: 3 }, /thoughts.*is not known|thoughts/],
  ['a price below 0', { input: 1, output: 2, cached_read: -1 }, /cached_read/],
])('a file is refused with %s', (_, prices, message) => {
  const file = { cost: { type: 'per_call', rate_usd: 1 } };
  expect(() => defineModel({ url: 'http://127.0.0.1/v1', file, part: { prices } })).toThrow(message);
});
