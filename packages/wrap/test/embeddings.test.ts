import type { RunningInstance } from '@capstan/capability/lifecycle/start-instance';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { priceAt } from '../../../test/support/wrapped-models.ts';
import { type ModelLevel, startModelLevel } from './model-level.ts';
import { failedChecks } from './support.ts';

let level: ModelLevel;
let embedding: RunningInstance;
beforeAll(async () => {
  level = await startModelLevel();
  embedding = await level.start({ ...priceAt(1), name: 'embed.small', part: { prices: { input: 2 } } });
});
afterAll(async () => {
  await embedding.stop();
  await level.close();
});

const texts = ['a', 'bb', 'x'.repeat(20)];
const vectorOf = (text: string): number[] => [text.length, 0.5, -1];

function floats(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}

async function embed(data: readonly object[], usage: object | null = { prompt_tokens: 7, total_tokens: 7 }) {
  const body = JSON.stringify({
    object: 'list',
    data,
    model: 'small-v2',
    ...(usage === null ? {} : { usage }),
  });
  return level.ask({ texts }, { garbage: body, contentType: 'application/json' }, embedding);
}

const rows = texts.map((text, index) => ({ index, embedding: vectorOf(text) }));
const toBase64 = (vector: readonly number[]) =>
  Buffer.from(new Float32Array(vector).buffer).toString('base64');

describe('vectors', () => {
  it.each<[string, readonly object[]]>([
    ['in order', rows],
    ['in reverse', rows.toReversed()],
    ['in any order', [rows[1], rows[2], rows[0]] as object[]],
    ['without an index, in order', rows.map(({ embedding: vector }) => ({ embedding: vector }))],
    [
      'in base64, in reverse',
      rows.map(({ index, embedding: v }) => ({ index, embedding: toBase64(v) })).toReversed(),
    ],
    [
      'with indexes as texts, in reverse',
      rows.map((row) => ({ ...row, index: String(row.index) })).toReversed(),
    ],
  ])('that come %s are those of their texts', async (_name, data) => {
    const { status, body } = await embed(data);
    const { embeddings, ...output } = body.output as { embeddings: string[] };
    expect([status, embeddings.map(floats)]).toEqual([200, texts.map(vectorOf)]);
    expect(output).toEqual({
      dimensions: 3,
      model: 'small-v2',
      usage: { input_tokens: 7 },
      cost_usd: 0.000_014,
    });
  });

  it.each<[string, readonly object[], string]>([
    ['one is missing', rows.slice(1), '2 vectors of 3 numbers'],
    ['one has the index of another', [rows[0], rows[0], rows[2]] as object[], 'two vectors of index 0'],
    [
      'one has no index',
      [rows[0], { embedding: [1, 2, 3] }, rows[2]] as object[],
      'a vector of index undefined',
    ],
    [
      'one has an index beyond the texts',
      [...rows.slice(0, 2), { index: 3, embedding: [1, 2, 3] }],
      'a vector of index 3',
    ],
    [
      'one has another length',
      [...rows.slice(0, 2), { index: 2, embedding: [1] }],
      '3 vectors of 3, 1 numbers',
    ],
    ['one is no vector', [...rows.slice(0, 2), { index: 2, embedding: { a: 1 } }], '2 vectors of 3 numbers'],
  ])('are refused, and paid, when %s', async (_name, data, seen) => {
    const { status, body } = await embed(data);
    expect([status, body]).toMatchObject([
      422,
      { error: `expected 3 vectors of one length, got ${seen}`, cost_usd: 0.000_014 },
    ]);
  });

  it.each([null, { prompt_tokens: 0, total_tokens: 0 }])(
    'cost what is reserved when usage is %j',
    async (usage) => {
      const { body } = await embed(rows, usage);
      expect(body.output).toMatchObject({ usage: { input_tokens: null } });
      expect(body.output).not.toHaveProperty('cost_usd');
    },
  );

  it('are asked for with the size that the caller names', async () => {
    const { request } = await level.ask(
      { texts: ['a'], dimensions: 2 },
      { vectors: () => [1, 2] },
      embedding,
    );
    expect(request).toMatchObject({
      path: '/v1/embeddings',
      body: { model: 'small', input: ['a'], dimensions: 2, encoding_format: 'float' },
    });
  });

  it('are refused with the words of the provider', async () => {
    const { status, body } = await level.ask(
      { texts },
      { status: 400, body: { error: { message: 'too long' } } },
      embedding,
    );
    expect([status, body]).toMatchObject([422, { provider: { status: 400, message: 'too long' } }]);
  });
});

it('an instance keeps the contract of a capability', async () => {
  level.provider.answer(() => ({ vectors: vectorOf }));
  expect(await failedChecks(embedding, { texts: ['a'] })).toEqual([]);
});
