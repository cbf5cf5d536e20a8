/**
 * How many tokens a call counts against the rate of its key when it ends.
 *
 * U1 A call counts what its model reports, in an answer or in an error, and at most what its input can need: a wrong
 *    report of an instance is bounded by the call.
 * U2 A call of a model without a known outcome counts an estimate, and so does one that failed after work was done: a
 *    client that leaves before the last line has still read the text. An answer without a report counts its text.
 * U3 Every other call counts nothing.
 */
import { ExactNumber } from '../contracts/exact-json.ts';
import { isModelName, modelPrefixes } from '../contracts/model-alias.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { countBytes } from '../expression/language.ts';
import { isPlainObject } from '../json/values.ts';
import { type CallOutcome, reportOf } from './outcome.ts';
import type { Delivery, RoutedCall } from './types.ts';

interface TokenMeasure {
  readonly bytesPerToken: number;
  /** Of an answer without `max_output_tokens`, and of a part of a message that is not text. */
  readonly perPart: number;
}

/** No tokenizer makes more tokens of a text than it has bytes, and no usual model writes longer answers. */
const bound: TokenMeasure = { bytesPerToken: 1, perPart: 131_072 };
const estimate: TokenMeasure = { bytesPerToken: 2, perPart: 4_096 };

const mostAnswers = 128;
const mediaPart = /^(?:input_)?(?:image|audio|video|file|document)(?:_url)?$/;

interface ModelRequest {
  readonly capability: string;
  readonly input: JsonObject;
}

function countQuestion(input: JsonObject, { bytesPerToken, perPart }: TokenMeasure): number {
  let parts = 0;
  const text = JSON.stringify(input, (_, value) => {
    const isMedia = isPlainObject(value) && typeof value.type === 'string' && mediaPart.test(value.type);
    if (!isMedia) return value;
    parts += 1;
    return null;
  });
  return Math.ceil(countBytes(text) / bytesPerToken) + parts * perPart;
}

function readPositive(value: Json | undefined, otherwise: number): number {
  return typeof value === 'number' && value >= 1 ? value : otherwise;
}

function countAnswer({ capability, input }: ModelRequest, { perPart }: TokenMeasure): number {
  if (capability.startsWith(modelPrefixes.embeddings)) return 0;
  const answers = Math.min(readPositive(input.n, 1), mostAnswers);
  return answers * readPositive(input.max_output_tokens, perPart);
}

function countMost(request: ModelRequest, measure: TokenMeasure): number {
  return countQuestion(request.input, measure) + countAnswer(request, measure);
}

function readCount(value: unknown): number {
  const count = value instanceof ExactNumber ? Number(value.toString()) : value;
  return typeof count === 'number' && count > 0 ? count : 0;
}

/** The tokens in `usage`; 0: none are reported. */
function readReport(usage: unknown): number {
  if (!isPlainObject(usage)) return 0;
  return readCount(usage.input_tokens) + readCount(usage.output_tokens);
}

type CountedCall = Pick<RoutedCall, 'route'> & { readonly input: JsonObject };

/** The tokens that the instance reports. */
function readReported(outcome: CallOutcome): number {
  if (outcome.kind === 'answered') return readReport(outcome.body.usage);
  return readReport(reportOf(outcome)?.usage);
}

/** What an answer without a report has used, by its size. */
function countAnswered({ capability, input }: ModelRequest, body: JsonObject): number {
  const answer = capability.startsWith(modelPrefixes.embeddings) ? 0 : countBytes(JSON.stringify(body));
  return countQuestion(input, estimate) + Math.ceil(answer / estimate.bytesPerToken);
}

/** @returns the tokens that an attempt counts at its end */
export function countUsedTokens(
  { route: { capability }, input }: CountedCall,
  { outcome, verdict: { settlement } }: Pick<Delivery, 'outcome' | 'verdict'>,
): number {
  const request = { capability, input };
  const reported = readReported(outcome);
  if (reported > 0) return Math.min(reported, countMost(request, bound));
  if (!isModelName(capability)) return 0;
  if (outcome.kind === 'answered') return countAnswered(request, outcome.body);
  return settlement === 'not_sent' || settlement === 'failed' ? 0 : countMost(request, estimate);
}
