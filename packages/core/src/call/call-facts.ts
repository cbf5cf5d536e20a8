/** What is stored of a call beside its money: the model, its tokens, and its contents where they are kept. */
import type { CallOutcome as CallEnding, CallTokens, KeptContent } from '../contracts/call.ts';
import { ExactNumber } from '../contracts/exact-json.ts';
import { isModelName } from '../contracts/model-alias.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { AttemptState } from '../contracts/run-step.ts';
import { countBytes } from '../expression/language.ts';
import { isList, isPlainObject } from '../json/values.ts';
import { type CallOutcome, reportOf, shortenText } from './outcome.ts';

/** How an attempt ended, for people. */
export function outcomeOf({
  state,
  error_code,
}: {
  readonly state: AttemptState;
  readonly error_code: string | null;
}): CallEnding {
  if (state === 'reserved' || state === 'dispatched') return 'running';
  if (state === 'cached') return 'cached';
  if (error_code === null) return 'succeeded';
  return error_code === 'run_cancelled' ? 'cancelled' : 'failed';
}

export interface CallUse {
  /** As its provider names it; null: the answer names none. */
  readonly model: string | null;
  readonly tokens: CallTokens | null;
}

const classes = {
  input: 'input_tokens',
  output: 'output_tokens',
  cached_read: 'cached_read_tokens',
  cached_write: 'cached_write_tokens',
  reasoning: 'reasoning_tokens',
} as const satisfies Record<keyof CallTokens, string>;
const mostTokens = 1_000_000_000_000;
const longestModel = 256;

function readCount(value: unknown): number | null {
  const count = value instanceof ExactNumber ? Number(value.toString()) : value;
  return typeof count === 'number' && count >= 0 && count <= mostTokens ? Math.ceil(count) : null;
}

function readTokens(usage: unknown): CallTokens | null {
  if (!isPlainObject(usage)) return null;
  const counted = Object.entries(classes).flatMap(([name, field]) => {
    const count = readCount(usage[field]);
    return count === null ? [] : [[name, count] as const];
  });
  return counted.length === 0 ? null : Object.fromEntries(counted);
}

export const noUse: CallUse = { model: null, tokens: null };

/** @returns what the instance reports of a call of a model; of other calls nothing is read */
export function readUse(capability: string, outcome: CallOutcome): CallUse {
  if (!isModelName(capability)) return noUse;
  if (outcome.kind !== 'answered') return { model: null, tokens: readTokens(reportOf(outcome)?.usage) };
  const { model = null, usage } = outcome.body;
  const isNamed = typeof model === 'string' && model !== '';
  return { model: isNamed ? shortenText(model, longestModel) : null, tokens: readTokens(usage) };
}

/** The most that is kept of an input or an output, as JSON. */
const mostContentBytes = 131_072;
/** Texts are cut to these lengths, until the whole fits. */
const lengths = [32_768, 8_192, 2_048, 512, 128] as const;

function cutTexts(value: Json, most: number): Json {
  if (typeof value === 'string') {
    const left = value.length - most;
    return left > 0 ? `${shortenText(value, most)} (${left} more characters)` : value;
  }
  if (isList(value)) return value.map((one) => cutTexts(one, most));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cutTexts(one as Json, most)]));
}

/** Shortens the longest texts of a value until it is small enough to keep; what stays too large is left out. */
function shortenContent(value: Json): Json {
  const bytes = countBytes(JSON.stringify(value));
  if (bytes <= mostContentBytes) return value;
  for (const most of lengths) {
    const cut = cutTexts(value, most);
    if (countBytes(JSON.stringify(cut)) <= mostContentBytes) return cut;
  }
  return `${bytes} bytes, which are not kept`;
}

/**
 * @param events the events of a stream in the client's own protocol, which the answer then lacks; null: there were none
 */
export function contentOf(input: JsonObject, outcome: CallOutcome, events: string | null): KeptContent {
  const body = outcome.kind === 'answered' ? outcome.body : null;
  const output = body !== null && events !== null ? { ...body, events } : body;
  return { input: shortenContent(input), output: shortenContent(output) };
}
