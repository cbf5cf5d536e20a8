/**
 * What the protocols of models have in common: how the result of a call of `model.…` and its parts are read, and how an
 * answer is streamed.
 */
import { writeExactJson } from '../contracts/exact-json.ts';
import type { FinishReason, ModelChoice, ModelResult } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../json/values.ts';

/** Writes an answer as server-sent events, in order. */
export interface AnswerWriter {
  /** Comes before the first part. */
  open(): readonly string[];
  /** @returns nothing when the protocol has no place for the part */
  part(delta: Json): readonly string[];
  close(result: ModelResult, costUsd: number): readonly string[];
  /** Keeps a silent connection alive; programs skip it. */
  readonly keepAlive: string;
  /** @param error in the form of the protocol */
  fail(error: JsonObject): readonly string[];
}

/** A comment in a stream of events. */
export const commentEvent = ': keep-alive\n\n';

/** @param type the name of the event; default: none */
export function toEvent(data: JsonObject, type?: string): string {
  return `${type === undefined ? '' : `event: ${type}\n`}data: ${writeExactJson(data)}\n\n`;
}

/** Fields without those that are null or undefined. */
export function withoutAbsent(fields: Readonly<Record<string, Json | null | undefined>>): JsonObject {
  const present: Record<string, Json> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (value !== undefined && value !== null) present[name] = value;
  }
  return present;
}

/** The answers of a result: one, unless the call asked for several. */
export function choicesOf(result: ModelResult): readonly ModelChoice[] {
  return result.choices ?? [result];
}

/** The text of an answer: JSON where the caller asked for it. Null: the model calls tools and writes nothing. */
export function contentOf({ text, json }: ModelChoice): string | null {
  return text ?? (json === undefined ? null : writeExactJson(json));
}

export function finishOf({ finish_reason, tool_calls }: ModelChoice): FinishReason {
  switch (finish_reason) {
    case 'length':
    case 'content_filter':
    case 'tool_calls':
      return finish_reason;
    default:
      return tool_calls === undefined ? 'stop' : 'tool_calls';
  }
}

interface ReadDelta {
  /** Of the choice. */
  readonly index: number;
  readonly content: string | null;
  /** What the model thinks before. */
  readonly reasoning: string | null;
  /** Pieces of calls of tools, in OpenAI's form. */
  readonly toolCalls: readonly JsonObject[];
}

/** @param delta a part of a result, as an instance passes it on */
export function readDelta(delta: Json): ReadDelta {
  if (typeof delta === 'string') return { index: 0, content: delta, reasoning: null, toolCalls: [] };
  if (!isPlainObject(delta)) return { index: 0, content: null, reasoning: null, toolCalls: [] };
  const { index, content, reasoning, tool_calls = null } = delta;
  return {
    index: Number.isSafeInteger(index) ? Number(index) : 0,
    content: typeof content === 'string' ? content : null,
    reasoning: typeof reasoning === 'string' ? reasoning : null,
    toolCalls: isList(tool_calls) ? tool_calls.filter(isPlainObject) : [],
  };
}

/** The whole answer in parts, of an instance that passed on none. */
export function wholeDeltas(result: ModelResult): readonly JsonObject[] {
  return choicesOf(result).map((choice, index) => {
    const content = contentOf(choice);
    const tool_calls = choice.tool_calls?.map((call, at) => ({ index: at, ...call }));
    return { index, ...withoutAbsent({ reasoning: choice.reasoning, content, tool_calls }) };
  });
}
