/**
 * JSON as text. Text from the database goes to a client without being parsed and serialised again: for a
 * long list of decisions, that was four fifths of a server's work.
 */
import { parseExactJson, writeExactJson } from '../contracts/exact-json.ts';
import type { Json } from '../contracts/primitives.ts';

const written: unique symbol = Symbol('JSON text');

/** The JSON text of a value of this type. */
export interface JsonText<Value> {
  readonly [written]: string;
  /** For the compiler only. */
  readonly of?: Value;
}

/** @returns undefined for a text that is no JSON; numbers stay as they are written */
export function parseJson(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

/** @param text valid JSON */
export function toJsonText<Value>(text: string): JsonText<Value> {
  return { [written]: text };
}

export function isJsonText(value: unknown): value is JsonText<unknown> {
  return typeof value === 'object' && value !== null && written in value;
}

/** The text as it is, or the JSON text of any other value. */
export function writeJson(value: unknown, indent?: number): string {
  return isJsonText(value) ? value[written] : writeExactJson(value, indent);
}

/** @returns the object with one more member at its end, whose JSON text is given */
export function withMember(object: Readonly<Record<string, Json>>, name: string, text: string): string {
  const begun = writeExactJson(object).slice(0, -1);
  return `${begun}${begun === '{' ? '' : ','}${JSON.stringify(name)}:${text}}`;
}
