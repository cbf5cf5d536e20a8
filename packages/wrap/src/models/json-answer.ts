/**
 * The text of a model, as the JSON that a caller's schema asks for. The text that is checked is the text that callers
 * get: a code block around it is left out of both, and numbers stay as they are written.
 *
 * The schema is a stranger's, so it is compiled as the registry compiles those of specs: nothing is fetched, patterns are
 * linear, the work is bounded. An error names the faults and shows the start of the answer, so that the caller
 * can ask once more with it.
 */
import { parseExactJson } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createSchemaCompiler } from '@capstan/core/schemas/schema-compiler';
import { providerFailure, shorten } from '../exchange/provider-failure.ts';
import type { ModelAnswer, TextFilter } from './model-answer.ts';
import { toReport, type Usage } from './money/usage.ts';

const fence = /^\s*```(?:json)?[^\S\n]*\r?\n/i;
const mayBeFence = /^\s*(?:`{0,2}|```(?:j|js|jso|json)?[^\S\n]*\r?)$/i;
/** A longer text that may still begin a code block begins none. */
const longestFence = 200;
/** What may belong to the end of a code block. */
const ofTail = /[\s`]/;

/** Without the end of a code block, and the white space around it. */
function cutFence(text: string): string {
  const trimmed = text.trimEnd();
  return trimmed.endsWith('```') ? trimmed.slice(0, -3).trimEnd() : text;
}

/** Models that are asked in words like to wrap JSON into one code block. */
export function createFenceFilter(): TextFilter {
  let isFenced: boolean | null = null;
  let held = '';
  /** @param from all before it may belong to the end of the code block */
  const grow = (from: number): string => {
    let end = held.length;
    if (isFenced === true) while (end > from && ofTail.test(held[end - 1] as string)) end -= 1;
    if (end === from) return '';
    const told = held.slice(0, end);
    held = held.slice(end);
    return told;
  };
  return {
    take: (piece) => {
      let from = held.length;
      held += piece;
      if (isFenced === null) {
        if (held.length <= longestFence && mayBeFence.test(held)) return '';
        isFenced = fence.test(held);
        if (isFenced) held = held.replace(fence, '');
        from = 0;
      }
      return grow(from);
    },
    end: () => (isFenced === true ? cutFence(held) : held),
  };
}

/** What a call has used, and what that costs, if it is known. */
export interface Spent {
  readonly usage: Usage;
  readonly cost_usd?: number;
}

/** @throws CallFailure `model_answer_invalid` */
export type JsonReader = (answer: ModelAnswer, spent: Spent) => Json;

const shownErrors = 5;
const excerptLength = 500;

/**
 * @param hide takes secrets out of a text
 * @throws CallFailure `provider_refused` when the schema cannot be used
 */
export function createJsonReader(schema: JsonObject, hide: (text: string) => string): JsonReader {
  const check = compile(schema);
  return ({ text, finishReason }, { usage, ...cost }) => {
    const refuse = (problem: string) => {
      const ending = finishReason === 'stop' ? '' : `, finish_reason ${finishReason}`;
      const excerpt = JSON.stringify(shorten(hide(text), excerptLength));
      const message = `${hide(problem)}${ending}; the answer was ${excerpt}`;
      return providerFailure('model_answer_invalid', message, { usage: toReport(usage), ...cost });
    };
    const value = parse(text);
    if (value === undefined) throw refuse('the answer is not JSON');
    const errors = check(value).slice(0, shownErrors);
    if (errors.length === 0) return value;
    throw refuse(errors.map(({ pointer, message }) => `${pointer || 'the answer'} ${message}`).join('; '));
  };
}

function compile(schema: JsonObject) {
  try {
    return createSchemaCompiler().compile(schema);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw providerFailure('provider_refused', `response_schema cannot be used: ${reason}`, { cost_usd: 0 });
  }
}

function parse(text: string): Json | undefined {
  try {
    return parseExactJson(text) as Json;
  } catch {
    return undefined;
  }
}
