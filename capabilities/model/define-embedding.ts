/** A model of embeddings as a capability: texts in, one vector for each text out. */

import { type Capability, defineCapability, type ExecContext } from '@capstan/capability';
import { embedMany } from 'ai';
import { z } from 'zod';
import type { ModelSettings } from './configuration.ts';
import { modelFailure } from './faults.ts';
import { createEmbeddingModel } from './provider.ts';
import { askInTime, costField, declareTerms, requireCovered } from './terms.ts';

const EmbeddingInput = z.strictObject({
  texts: z.array(z.string().min(1)).min(1).max(1_000),
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

export function defineEmbedding(settings: ModelSettings): Capability {
  const model = createEmbeddingModel(settings);
  const exec = async (
    input: EmbeddingInput,
    { signal, deadline, log }: ExecContext,
  ): Promise<EmbeddingOutput> => {
    const { texts, dimensions } = input;
    requireCovered(settings, Buffer.byteLength(texts.join('')), 0);
    const { embeddings, usage } = await askInTime(settings, { signal, deadline }, (abortSignal) =>
      embedMany({
        model,
        values: texts,
        maxRetries: 0,
        abortSignal,
        ...(dimensions === undefined ? {} : { providerOptions: { openaiCompatible: { dimensions } } }),
      }),
    );
    const inputTokens = Number.isInteger(usage.tokens) ? usage.tokens : null;
    return {
      embeddings: embeddings.map(toBase64),
      dimensions: requireVectors(embeddings, texts.length),
      model: settings.MODEL_NAME,
      usage: { input_tokens: inputTokens },
      ...costField(settings, { inputTokens, outputTokens: 0 }, log),
    };
  };
  const description = `Turns texts into vectors by the model ${settings.MODEL_NAME}.`;
  return defineCapability({
    ...declareTerms(settings),
    description,
    input: EmbeddingInput,
    output: EmbeddingOutput,
    exec,
  });
}

function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}

/** @returns the length of the vectors @throws CallFailure `model_answer_invalid` */
function requireVectors(vectors: readonly (readonly number[])[], count: number): number {
  const lengths = new Set(vectors.map(({ length }) => length));
  const [length = 0] = lengths;
  if (vectors.length === count && lengths.size === 1 && length > 0) return length;
  const seen = `${vectors.length} vectors of ${[...lengths].join(', ') || 'no'} numbers`;
  throw modelFailure('model_answer_invalid', `expected ${count} vectors of one length, got ${seen}`);
}
