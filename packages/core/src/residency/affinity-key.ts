/** The key of a call by its input: an expression that a capability declares, and that a step or call may override. */

import { evaluateOverInput, findInputFault } from '../call/input-expressions.ts';
import type { JsonObject } from '../contracts/primitives.ts';
import { Meter, workLimits } from '../expression/meter.ts';
import { toKey } from './residency.ts';

/** The key by the text of an expression; null: the input has none. */
export type KeyOfInput = (text: string) => string | null;

/** The text of a caller as a key, whatever it holds: none of it is an expression, since no two braces open one. */
export function toLiteral(text: string): string {
  return text.replaceAll(/\{(?=\{)/g, '{ ');
}

/** What is wrong with the text of an affinity; null: nothing. */
export function findAffinityFault(text: string): string | null {
  return findInputFault(text, 'template');
}

/** Evaluates each text once for the input. A text that fails for it gives no key: placing is only slower then. */
export function createKeyOfInput(
  input: JsonObject | (() => JsonObject),
  note: (units: number) => void = () => undefined,
): KeyOfInput {
  let keys: Map<string, string | null> | undefined; // few calls need it
  return (text) => {
    keys ??= new Map();
    let key = keys.get(text);
    if (key === undefined) {
      const meter = new Meter(workLimits.price);
      const { value } = evaluateOverInput(text, typeof input === 'function' ? input() : input, meter);
      note(meter.spent);
      key = toKey(value);
      keys.set(text, key);
    }
    return key;
  };
}
