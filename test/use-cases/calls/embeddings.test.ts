import { mostEmbeddingNumbers } from '@capstan/core/contracts/limits';
import type { EmbeddingsAnswer } from '@capstan/core/contracts/openai';
import { writeJson } from '@capstan/core/json/text';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { writeEmbeddings } from '../../../src/use-cases/calls/embeddings.ts';

type Format = 'float' | 'base64' | null;

async function write(embeddings: string[], encoding_format: Format = null): Promise<EmbeddingsAnswer | null> {
  const request = { model: 'embed.a', input: 'x', encoding_format };
  const text = await writeEmbeddings(request, { embeddings, usage: { input_tokens: 3 } }, 0.25);
  return text === null ? null : (JSON.parse(writeJson(text)) as EmbeddingsAnswer);
}

function inBase64(numbers: Float32Array): string {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('base64');
}

it('writes each vector as its numbers, or as it is', async () => {
  const vectors = fc.array(fc.float32Array({ maxLength: 20 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(vectors, async (given) => {
      const texts = given.map(inBase64);
      const usage = { prompt_tokens: 3, total_tokens: 3, cost_usd: 0.25 };
      const toRow = (embedding: unknown, index: number) => ({ object: 'embedding', index, embedding });
      const numbers = given.map((vector) => JSON.parse(JSON.stringify(Array.from(vector))));
      const rest = { object: 'list', model: 'embed.a', usage };
      expect(await write(texts)).toEqual({ ...rest, data: numbers.map(toRow) });
      expect(await write(texts, 'base64')).toEqual({ ...rest, data: texts.map(toRow) });
    }),
  );
});

it.each([
  ['one vector of all numbers', 1, mostEmbeddingNumbers],
  ['many vectors', 300, 3_072],
  ['vectors of one number', 100_000, 1],
])('gives way to other work at least every few thousand numbers: %s', async (_what, vectors, numbers) => {
  const vector = inBase64(new Float32Array(numbers).fill(0.1));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  expect((await write(Array<string>(vectors).fill(vector)))?.data.length).toBe(vectors);
  isDone = true;
  expect(turns).toBeGreaterThan((vectors * numbers) / 10_000);
});

it.each([
  ['one vector', 1, mostEmbeddingNumbers + 1],
  ['many vectors', 1_000, 3_072],
])('refuses more numbers than it writes out, but not in base64: %s', async (_what, vectors, numbers) => {
  const texts = Array<string>(vectors).fill(inBase64(new Float32Array(numbers)));
  await expect(write(texts)).rejects.toMatchObject({
    code: 'output_invalid',
    message: expect.stringContaining('at most 1,000,000 are written out; ask for encoding_format base64'),
  });
  expect((await write(texts, 'base64'))?.data.length).toBe(vectors);
});

it.each(['a', 'ab!d', 'abc', '=abc', 'ab=c', 'AAAA AAAA', '"},{'])('takes %s for no vector', async (text) => {
  expect(await write([inBase64(new Float32Array(3)), text])).toBeNull();
  expect(await write([text], 'base64')).toBeNull();
});
