/**
 * Embeddings in OpenAI's form. An answer holds up to 16 MiB of vectors, three million numbers. They are written in
 * pieces, each in a turn of the event loop of its own, so that other requests are served in between.
 */
import { setImmediate } from 'node:timers/promises';
import { mostEmbeddingNumbers, showCount } from '@capstan/core/contracts/limits';
import type { EmbeddingResult, EmbeddingsAnswer, EmbeddingsRequest } from '@capstan/core/contracts/openai';
import { AppError } from '@capstan/core/errors/app-error';
import { type JsonText, toJsonText } from '@capstan/core/json/text';

/** A piece of the answer's text, and how many numbers it took. Null: a vector is no base64. */
type VectorPiece = readonly [text: string, numbers: number] | null;

/** Numbers that are written in one turn: some milliseconds. */
const numbersPerTurn = 4_096;
/** What a vector takes besides its numbers. */
const numbersPerVector = 16;

function isBase64(vector: string): boolean {
  return vector.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(vector);
}

function beginVector(index: number): string {
  return `${index === 0 ? '' : ','}{"object":"embedding","index":${index},"embedding":`;
}

function* quote(vectors: readonly string[]): Generator<VectorPiece> {
  for (const [index, vector] of vectors.entries()) {
    const numbers = numbersPerVector + vector.length / 1_000;
    yield isBase64(vector) ? [`${beginVector(index)}"${vector}"}`, numbers] : null;
  }
}

/** @throws AppError `output_invalid` when there are too many numbers to write out */
function* writeOut(vectors: readonly string[]): Generator<VectorPiece> {
  const count = vectors.reduce((sum, { length }) => sum + Math.floor((length * 3) / 16), 0);
  if (count > mostEmbeddingNumbers) {
    const most = showCount(mostEmbeddingNumbers);
    const message = `the vectors have ${showCount(count)} numbers, and at most ${most} are written out; ask for encoding_format base64, or for fewer texts`;
    throw new AppError('output_invalid', message);
  }
  for (const [index, vector] of vectors.entries()) {
    if (!isBase64(vector)) return yield null;
    const bytes = Uint8Array.from(Buffer.from(vector, 'base64'));
    const numbers = new Float32Array(bytes.buffer, 0, Math.floor(bytes.length / 4));
    yield [`${beginVector(index)}[`, numbersPerVector];
    for (let from = 0; from < numbers.length; from += numbersPerTurn) {
      const some = Array.from(numbers.subarray(from, from + numbersPerTurn));
      yield [(from === 0 ? '' : ',') + JSON.stringify(some).slice(1, -1), some.length];
    }
    yield [']}', 0];
  }
}

/** @returns null when a piece is null */
async function joinInTurns(pieces: Iterable<VectorPiece>): Promise<string | null> {
  const texts: string[] = [];
  let taken = 0;
  for (const piece of pieces) {
    if (piece === null) return null;
    texts.push(piece[0]);
    taken += piece[1];
    if (taken < numbersPerTurn) continue;
    taken = 0;
    await setImmediate();
  }
  return texts.join('');
}

/**
 * @param costUsd what the call cost
 * @returns the answer as text; null when a vector is no base64
 * @throws AppError `output_invalid` when there are too many numbers to write out
 */
export async function writeEmbeddings(
  { encoding_format, model: asked }: EmbeddingsRequest,
  { embeddings, model = asked, usage }: EmbeddingResult,
  costUsd: number,
): Promise<JsonText<EmbeddingsAnswer> | null> {
  const data = await joinInTurns(encoding_format === 'base64' ? quote(embeddings) : writeOut(embeddings));
  if (data === null) return null;
  const tokens = usage?.input_tokens ?? 0;
  const rest = { model, usage: { prompt_tokens: tokens, total_tokens: tokens, cost_usd: costUsd } };
  return toJsonText(`{"object":"list","data":[${data}],${JSON.stringify(rest).slice(1)}`);
}
