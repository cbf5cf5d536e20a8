/** One call of `embed.…` through OpenAI's embeddings: texts in, one vector for each text out, in the order of the texts. */

import type { FailureReport } from '@capstan/core/contracts/capability';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList } from '@capstan/core/json/values';
import { z } from 'zod';
import { unexpectedAnswer } from '../exchange/event-stream.ts';
import { openExchange, readBytes } from '../exchange/exchange.ts';
import {
  failureInAnswer,
  isRefusal,
  providerFailure,
  readProviderError,
  unnamedError,
} from '../exchange/provider-failure.ts';
import type { PreparedKind, WrapHost, WrappedCall } from '../wrap-kind.ts';
import type { ProviderPart } from './model-part.ts';
import { type PricedPart, readFilePrices } from './money/file-prices.ts';
import { ownCache } from './money/prices.ts';
import { costOfTexts, type ModelTerms, priceOf, readTerms, requireCovered } from './money/terms.ts';
import { readOpenAiUsage, toReport, withoutZeros } from './money/usage.ts';
import { fieldOf, parseObject, textField } from './protocol.ts';
import { createProvider, type Provider } from './provider.ts';

const EmbeddingInput = z.strictObject({
  texts: z.array(z.string().min(1)).min(1).max(2_048),
  dimensions: z.number().int().min(1).max(65_536).optional(),
});
type EmbeddingInput = z.infer<typeof EmbeddingInput>;

const EmbeddingOutput = z.object({
  embeddings: z.array(z.string()).meta({
    description: 'For each text its vector: 32-bit floats, little-endian, in base64.',
  }),
  dimensions: z.number().int(),
  model: z.string(),
  usage: z.object({ input_tokens: z.number().int().min(0).nullable() }),
  cost_usd: z.number().min(0).optional(),
});
type EmbeddingOutput = z.infer<typeof EmbeddingOutput>;

function toBytes(vector: Json | undefined): Buffer | null {
  if (typeof vector === 'string') return Buffer.from(vector, 'base64');
  if (!isList(vector ?? null)) return null;
  const numbers = vector as readonly Json[];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [at, value] of numbers.entries()) {
    const number = Number(value);
    if (Number.isNaN(number)) return null;
    bytes.writeFloatLE(number, at * 4);
  }
  return bytes;
}

/**
 * The vectors by the `index` that the provider gives each of them; without any index, in the order of the answer.
 * @throws string what is wrong
 */
function orderVectors(rows: readonly Json[], count: number): (Buffer | null)[] | string {
  const isNumbered = rows.some((row) => (fieldOf(row, 'index') ?? null) !== null);
  const vectors = new Array<Buffer | null>(count).fill(null);
  for (const [at, row] of rows.entries()) {
    const index = isNumbered ? fieldOf(row, 'index') : at;
    const place = Number(typeof index === 'object' ? Number.NaN : index);
    if (!Number.isInteger(place) || place < 0 || place >= count)
      return `a vector of index ${JSON.stringify(index)}`;
    if (vectors[place] !== null) return `two vectors of index ${place}`;
    vectors[place] = toBytes(fieldOf(row, 'embedding'));
  }
  return vectors;
}

/** @throws CallFailure `model_answer_invalid` */
function readVectors(rows: readonly Json[], count: number, usage: FailureReport['usage']): readonly Buffer[] {
  const ordered = orderVectors(rows, count);
  const vectors = typeof ordered === 'string' ? [] : ordered.filter((vector) => vector !== null);
  const lengths = new Set(vectors.map(({ length }) => length));
  const [length = 0] = lengths;
  const isWhole = vectors.length === count && lengths.size === 1 && length > 0 && length % 4 === 0;
  if (isWhole) return vectors;
  const numbers = [...lengths].map((bytes) => bytes / 4).join(', ') || 'no';
  const seen = typeof ordered === 'string' ? ordered : `${vectors.length} vectors of ${numbers} numbers`;
  const message = `expected ${count} vectors of one length, got ${seen}`;
  throw providerFailure('model_answer_invalid', message, { usage });
}

interface Embeddings {
  readonly part: ProviderPart;
  readonly provider: Provider;
  readonly terms: ModelTerms;
}

async function perform({ part, provider, terms }: Embeddings, call: WrappedCall): Promise<Json> {
  const { texts, dimensions } = call.scope.input as unknown as EmbeddingInput;
  const countQuestion = () => Buffer.byteLength(texts.join(''));
  requireCovered(terms, { way: 'translated', times: 1, countQuestion, answer: 0 });
  const size = dimensions === undefined ? {} : { dimensions };
  const fields = { model: part.model, input: texts, encoding_format: 'float', ...size, ...part.settings };
  const body = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as JsonObject;
  const answer = await openExchange(provider.send('/embeddings', { body, signal: call.context.signal }));
  const text = new TextDecoder().decode(await readBytes(answer));
  const said = parseObject(text);
  const wrong = said?.error ?? null;
  if (wrong !== null) {
    const error = readProviderError({ error: wrong }) ?? unnamedError;
    throw failureInAnswer(error, provider.hide, isRefusal(error) ? { cost_usd: 0 } : {});
  }
  const rows = said?.data ?? null;
  if (said === null || !isList(rows)) throw unexpectedAnswer(answer, text, provider.hide);
  const { input_tokens } = withoutZeros(readOpenAiUsage(said.usage), true);
  const usage = { input_tokens };
  const vectors = readVectors(rows, texts.length, toReport({ ...usage, output_tokens: null }));
  const output: EmbeddingOutput = {
    embeddings: vectors.map((vector) => vector.toString('base64')),
    dimensions: (vectors[0]?.length ?? 0) / 4,
    model: textField(said, 'model') || part.model,
    usage,
  };
  return output as unknown as Json;
}

/** @param kind the name of the part in the file */
export function prepareEmbeddings(
  part: ProviderPart & PricedPart,
  host: WrapHost,
  { kind, headers }: { readonly kind: string; readonly headers: Readonly<Record<string, string>> },
): PreparedKind {
  const prices = readFilePrices(part, { host, kind, cache: ownCache, isOfTexts: true });
  const terms = readTerms({}, prices, host);
  const provider = createProvider(part, { host, kind, headers });
  return {
    defaults: { input: EmbeddingInput, output: EmbeddingOutput },
    fileForm: 'data_uri',
    writesFiles: false,
    originOf: () => provider.origin,
    ...priceOf(terms, { write: costOfTexts, fixed: { output_tokens: 0 } }),
    perform: (call) => perform({ part, provider, terms }, call),
  };
}
