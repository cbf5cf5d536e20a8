/** The chat requests that are replayed: of a file, or drawn from distributions that were fitted to one. */
import { readFileSync } from 'node:fs';
import { createRandom } from '../shared/random.ts';

export interface ChatRequest {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * Lognormal, cut at a longest value. Fitted to 19,366 requests of the conversation part of Azure's LLM inference trace of
 * 2023 (Microsoft AzurePublicDataset, CC BY 4.0): mean and deviation of the logarithms, and the longest.
 */
const fitted = {
  input: { mean: 6.633, deviation: 0.985, most: 14_050 },
  output: { mean: 5.019, deviation: 0.859, most: 1_000 },
} as const;

type Random = () => number;

function drawNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function drawTokens(random: Random, { mean, deviation, most }: (typeof fitted)[keyof typeof fitted]): number {
  return Math.max(1, Math.min(most, Math.round(Math.exp(mean + deviation * drawNormal(random)))));
}

/** @param file of `at_s,input_tokens,output_tokens`; comments begin with `#`; null: draws from the distributions */
export function createTrace(file: string | null, seed: number): () => ChatRequest {
  const random = createRandom(seed).uniform;
  if (file === null) {
    return () => ({
      inputTokens: drawTokens(random, fitted.input),
      outputTokens: drawTokens(random, fitted.output),
    });
  }
  const [, ...lines] = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return () => {
    const [, input = 1, output = 1] = (lines[Math.floor(random() * lines.length)] ?? '')
      .split(',')
      .map(Number);
    return { inputTokens: input, outputTokens: output };
  };
}
