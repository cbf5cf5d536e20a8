/** Models without prices of their own have those of the shipped book; one that the book does not know is refused. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { modelKey } from '../../../test/support/wrapped-models.ts';
import { highestPrices } from '../src/models/money/highest-prices.ts';
import { type BookModel, lookUp, readPriceBook } from '../src/models/money/price-book.ts';
import { ownCache, ratesAt, type StatedPeriod, StatedPrices, toPrices } from '../src/models/money/prices.ts';
import { readWrapFile } from '../src/wrap-file.ts';

const book = readPriceBook();

interface BookedFile {
  readonly kind?: 'openai' | 'anthropic';
  readonly name?: string;
  readonly url?: string;
  readonly model: string;
  readonly prices?: object | string;
  readonly variable?: string;
}

const openai = 'https://api.openai.com/v1';

/** The price that an instance registers, or the faults of its file. */
function declare({
  kind = 'openai',
  name = 'model.a',
  url = openai,
  model,
  prices,
  variable = '',
}: BookedFile) {
  const endpoint = name.startsWith('embed.') ? 'embeddings' : 'chat';
  const file = {
    kind,
    name,
    version: '1.0.0',
    description: 'Asks a model.',
    cost: { type: 'per_call', rate_usd: 5 },
    [kind]: {
      base_url: url,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the file
      token: '${MODEL_KEY}',
      model,
      ...(kind === 'openai' ? { endpoint } : {}),
      prices,
    },
  };
  const reading = readWrapFile(JSON.stringify(file), {
    folder: '/nowhere',
    stateDir: '/nowhere',
    environment: { MODEL_KEY: modelKey, MODEL_PRICES: variable },
  });
  if ('capability' in reading) return reading.capability.cost_model;
  return reading.findings.map(
    ({ pointer, message, suggestion }) => `${pointer}: ${message}; ${suggestion ?? ''}`,
  );
}

const dated = `book of ${book.date}`;

describe('the book', () => {
  const entries = Object.entries(book.providers).flatMap(([id, { models }]) =>
    models.map((model): [string, BookModel] => [`${id}/${model.names[0]}`, model]),
  );

  it('has prices that a file could state, and nothing for free', () => {
    for (const [entry, { names, prices }] of entries) {
      const stated = prices.map((period) => ({ output: 0, ...period }));
      expect(StatedPrices.safeParse(stated).error, entry).toBeUndefined();
      expect(names.length, entry).toBeGreaterThan(0);
      expect(Math.min(...prices.map(({ input }) => input)), entry).toBeGreaterThan(0);
      const dates = prices.map(({ from = '' }) => from);
      expect(dates, entry).toEqual(dates.toSorted());
      expect(dates[0], entry).toBe('');
    }
  });

  it('names each model of a provider once', () => {
    for (const [id, { models }] of Object.entries(book.providers)) {
      const names = models.flatMap((model) => model.names);
      expect(names.length, id).toBe(new Set(names).size);
    }
  });

  it('holds the higher price where its catalogues differ', () => {
    const noted = entries.flatMap(([entry, { prices, notes = [] }]) =>
      notes.flatMap((note) => {
        const [, name, above, one, other] = /^(\w+)(?: above (\d+))?: ([\d.]+) or ([\d.]+)$/.exec(note) ?? [];
        return name === undefined ? [] : [{ entry, prices, name, above, pair: [Number(one), Number(other)] }];
      }),
    );
    expect(noted.length).toBeGreaterThan(50);
    for (const { entry, prices, name, above = '0', pair } of noted) {
      const tokens = Number(above) === 0 ? 0 : Number(above) * 1.02;
      const rates = ratesAt(toPrices(prices, ownCache), tokens, 0);
      expect(rates[name as keyof typeof rates], entry).toBeGreaterThanOrEqual(Math.max(...pair));
    }
  });
});

describe('a model has the prices of the book', () => {
  const sonnet = {
    kind: 'anthropic',
    url: 'https://api.anthropic.com/v1',
    model: 'claude-sonnet-4-5',
  } as const;
  it.each<[string, BookedFile, string]>([
    ['that its file asks for', { ...sonnet, prices: 'book' }, `${dated}: anthropic/claude-sonnet-4-5`],
    [
      'that the environment asks for',
      { ...sonnet, variable: 'book' },
      `${dated}: anthropic/claude-sonnet-4-5`,
    ],
    ['of an entry', { model: 'my-deployment', prices: { book: 'openai/gpt-5' } }, `${dated}: openai/gpt-5`],
    [
      'of the provider whose models it serves',
      { url: 'https://mine.openai.azure.com/openai/v1', model: 'claude-opus-4-5', prices: 'book' },
      `${dated}: anthropic/claude-opus-4-5`,
    ],
    [
      'of all that have the name, at an address that is not in it',
      { url: 'http://127.0.0.1:8080/v1', model: 'openai/gpt-oss-120b', prices: 'book' },
      `${dated}: the highest of`,
    ],
    [
      'of texts',
      { name: 'embed.a', model: 'text-embedding-3-small', prices: 'book' },
      `${dated}: openai/text-embedding-3-small`,
    ],
    [
      'by hand, which go before the book',
      { model: 'x', prices: { input: 1, output: 2 }, variable: 'book' },
      'by hand',
    ],
  ])('%s', (_, file, source) => {
    expect(declare(file)).toMatchObject({ price_source: expect.stringContaining(source) });
  });

  it('with its tiers, in what it declares', () => {
    const declared = declare({ ...sonnet, prices: 'book' });
    expect(declared).toMatchObject({ worst_case: expect.stringContaining('where("t" > 200000)') });
  });

  it.each([
    [{ model: 'x' }, undefined],
    [{ model: 'x', prices: { input: 0, output: 0 }, variable: 'book' }, undefined],
  ])('and none without that, or where the file states that it is free: %j', (file, source) => {
    expect(declare(file)).not.toHaveProperty('price_source', source ?? expect.anything());
  });
});

describe('a file is refused', () => {
  const hint = /set prices by hand.*prices: \{input: 3, output: 15\}.*\{book: openai\/gpt-5\}/;
  it.each<[string, BookedFile, RegExp]>([
    [
      'whose model the provider does not have',
      { model: 'gpt-5-codecs', prices: 'book' },
      /^\/openai\/model: the price book of \d{4}-\d\d-\d\d has no such model of openai; the nearest are openai\/gpt-5/,
    ],
    [
      'also when the environment asks for the book',
      { model: 'my-own-llama:8b', url: 'http://127.0.0.1:11434/v1', variable: 'book' },
      /^\/openai\/model: .* has no such model; set prices by hand/,
    ],
    [
      'that names an entry which is not there',
      { model: 'x', prices: { book: 'anthropic/claude-sonet-4-5' } },
      /^\/openai\/prices: .*no such model of anthropic; the nearest are anthropic\/claude-sonnet-4-5/,
    ],
    [
      'that names a provider which is not there',
      { model: 'x', prices: { book: 'antropic/claude-sonnet-4-5' } },
      /no such model; the nearest are .*claude-sonnet-4/,
    ],
    [
      'whose model gives no answers',
      { model: 'text-embedding-3-small', prices: 'book' },
      /the entry of the price book has no price of answers/,
    ],
  ])('%s', (_, file, message) => {
    const faults = declare(file);
    expect(faults).toEqual([expect.stringMatching(message)]);
    expect(faults).toEqual([expect.stringMatching(hint)]);
  });

  it('with another value of the variable', () => {
    const faults = declare({ model: 'x', prices: { input: 1, output: 1 }, variable: 'latest' });
    expect(faults).toEqual([expect.stringContaining('MODEL_PRICES is "latest"; allowed is book')]);
  });
});

const rate = fc.integer({ min: 1, max: 99 });
const rates = fc.record(
  { input: rate, output: rate, cached_write: rate, reasoning: rate, input_audio: rate },
  { requiredKeys: ['input', 'output'] },
);
const tier = fc.tuple(fc.constantFrom(100_000, 200_000, 272_000), rates);
const period = fc.tuple(rates, fc.array(tier, { maxLength: 2 })).map(([of, tiers]): StatedPeriod => {
  const above = [...new Map(tiers)]
    .map(([tokens, one]) => ({ tokens, ...one }))
    .toSorted((a, b) => a.tokens - b.tokens);
  return above.length === 0 ? of : { ...of, above };
});
const source = fc.tuple(period, fc.option(period, { nil: undefined })).map(([now, later]): StatedPeriod[] => {
  return later === undefined ? [now] : [now, { from: '2027-01-01', ...later }];
});

it('the highest of several sources is below none of them, at any time and length', () => {
  const places = fc.tuple(fc.constantFrom(1, 100_001, 150_000, 210_000, 300_000), fc.constantFrom(0, 4e12));
  fc.assert(
    fc.property(fc.array(source, { minLength: 1, maxLength: 3 }), places, (sources, [tokens, at]) => {
      const highest = ratesAt(toPrices(highestPrices(sources), ownCache), tokens, at);
      for (const one of sources) {
        const own = ratesAt(toPrices(one, ownCache), tokens, at);
        for (const name of Object.keys(own) as (keyof typeof own)[]) {
          if (name !== 'cached_read') expect(highest[name], name).toBeGreaterThanOrEqual(own[name]);
        }
      }
    }),
    { numRuns: runs(500) },
  );
});

it('a long name is answered at once', () => {
  const asked = { entry: null, address: openai, model: 'gpt'.repeat(100_000) };
  expect(lookUp(book, asked)).toMatchObject({ unknown: expect.stringContaining('has no such model') });
});
