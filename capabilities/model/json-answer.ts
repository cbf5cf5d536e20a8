/**
 * What a model wrote, as the JSON that a caller's schema asks for. The schema is a stranger's, so it is compiled as the
 * registry compiles those of specs: nothing is fetched, patterns are linear, the work is bounded. An error names the
 * fault and shows the start of the answer, so that the caller can ask once more with it.
 */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createSchemaCompiler } from '@capstan/core/schemas/schema-compiler';
import type { ModelAnswer } from './ask-model.ts';
import { modelFailure, shorten } from './faults.ts';

/** @throws CallFailure `model_answer_invalid` */
export type JsonReader = (answer: ModelAnswer) => Json;

const shownErrors = 5;
const excerptLength = 500;

/** Models that are asked in words like to wrap JSON into one code block. */
function unwrap(text: string): string {
  return /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(text)?.[1] ?? text;
}

/**
 * @param hide takes secrets out of a text
 * @throws CallFailure `model_rejected` when the schema cannot be used
 */
export function createJsonReader(schema: JsonObject, hide: (text: string) => string): JsonReader {
  const check = compile(schema);
  return ({ text, finishReason }) => {
    const refuse = (problem: string) => {
      const ending = finishReason === 'stop' ? '' : `, finish_reason ${finishReason}`;
      const excerpt = JSON.stringify(shorten(hide(text), excerptLength));
      return modelFailure('model_answer_invalid', `${hide(problem)}${ending}; the answer was ${excerpt}`);
    };
    const value = parse(unwrap(text));
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
    throw modelFailure('model_rejected', `response_schema cannot be used: ${reason}`);
  }
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
