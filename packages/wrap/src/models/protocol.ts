/** What the protocols of models have in common: a question in Capstan's form, and the readers of answers. */

import { parseExactJson } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isPlainObject } from '@capstan/core/json/values';
import type { ServerEvent } from '../exchange/event-stream.ts';
import { providerFailure, shorten } from '../exchange/provider-failure.ts';
import type { Message, ModelInput, OfferedTool } from './conversation.ts';
import type { GrowingAnswer } from './model-answer.ts';
import { toReport, type Usage, withoutZeros } from './money/usage.ts';

export interface Question {
  readonly system: string;
  /** Without the messages of the system. */
  readonly messages: readonly Message[];
  readonly tools: readonly OfferedTool[];
  readonly toolChoice: ModelInput['tool_choice'];
  /** Asks the provider for JSON of this schema. */
  readonly schema: JsonObject | undefined;
  readonly maxOutputTokens: number;
  /** How long the model thinks, in a word that it knows. */
  readonly effort: string | undefined;
  /** The fields that need no translation. */
  readonly input: ModelInput;
}

export interface AnswerReader {
  /** @returns true for the last event of an answer */
  event(event: ServerEvent): boolean;
  /** @returns false when the value is no answer of this protocol */
  whole(value: JsonObject): boolean;
}

export interface ModelProtocol {
  /** Below the base address. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Also names the model, and asks for a stream. */
  toBody(question: Question): JsonObject;
  createReader(answer: GrowingAnswer): AnswerReader;
  /** What a body has in `usage`. */
  readUsage(usage: Json | undefined): Usage;
}

/** The body with the settings of the file, of which null removes a field. */
export function withSettings(body: JsonObject, settings: JsonObject): JsonObject {
  const fields = Object.entries({ ...body, ...settings }).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  const all = Object.fromEntries(fields) as JsonObject;
  if (all.stream === true) return all;
  // Only a stream has options.
  const { stream_options: _, ...whole } = all;
  return whole;
}

/** Null: the text is no object of JSON. Its numbers stay as they are written. */
export function parseObject(text: string, parse = parseExactJson): JsonObject | null {
  try {
    const value = parse(text);
    return isPlainObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Of an event only arguments of tools hold numbers of callers, so all else is parsed as fast as Node can. */
function parseEvent(data: string): unknown {
  return data.includes('"arguments"') || data.includes('"input"') ? parseExactJson(data) : JSON.parse(data);
}

/** The objects of an event: one, unless a server leaves out the blank lines between events. @throws CallFailure */
export function readObjects(data: string): readonly JsonObject[] {
  const whole = parseObject(data, parseEvent);
  if (whole !== null) return [whole];
  const lines = data.split('\n').map((line) => parseObject(line, parseEvent));
  if (lines.length > 1 && lines.every((line) => line !== null)) return lines;
  const message = `an event of the answer is no object of JSON: ${shorten(data, 200)}`;
  throw providerFailure('provider_unavailable', message);
}

export function fieldOf(value: Json | undefined, name: string): Json | undefined {
  return isPlainObject(value) ? value[name] : undefined;
}

export function textField(value: Json | undefined, name: string): string {
  const text = fieldOf(value, name);
  return typeof text === 'string' ? text : '';
}

/** The tokens that a refusal reports; null: none. */
export function usageOfRefusal({ readUsage }: Pick<ModelProtocol, 'readUsage'>) {
  return (body: Json): ReturnType<typeof toReport> | null => {
    const counts = toReport(withoutZeros(readUsage(fieldOf(body, 'usage')), true));
    return (counts.input_tokens ?? 0) > 0 ? counts : null;
  };
}
