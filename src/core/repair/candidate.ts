/** What a validator found, and what may repair it: one operation each. */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { PatchOperation } from '../json/patch.ts';

export type RepairKind = 'rename' | 'move' | 'coerce' | 'wrap' | 'clamp' | 'respell' | 'drop' | 'fill';

/** One operation that may repair something; whether it does, only the schema can say. */
export interface Candidate {
  readonly kind: RepairKind;
  /** Where the input is wrong. */
  readonly pointer: string;
  /** With the `test` that guards it, where it depends on the old value. */
  readonly operations: readonly PatchOperation[];
  readonly description: string;
  /** What is touched: the same value twice where it only moves, undefined where there was or will be none. */
  readonly change: {
    readonly pointer: string;
    readonly oldValue: Json | undefined;
    readonly newValue: Json | undefined;
  };
  /** False: it may be shown, but the author may well have meant something else. */
  readonly isSure: boolean;
}

/** What is to be repaired, by which schema. */
export interface Broken {
  readonly schema: JsonObject;
  readonly input: Json;
}

interface Replacement {
  readonly pointer: string;
  readonly oldValue: Json;
  readonly newValue: Json;
  /** Without the place. */
  readonly description: string;
  /** Default: it is. */
  readonly isSure?: boolean;
}

export function replaceValue(
  kind: RepairKind,
  { pointer, oldValue, newValue, description, isSure = true }: Replacement,
): Candidate {
  return {
    kind,
    pointer,
    operations: [
      { op: 'test', path: pointer, value: oldValue },
      { op: 'replace', path: pointer, value: newValue },
    ],
    description: `${description} at ${pointer}`,
    change: { pointer, oldValue, newValue },
    isSure,
  };
}

/** @param description the sentence, with the place and the reason */
export function removeKey(
  pointer: string,
  value: Json,
  { description, isSure }: Pick<Candidate, 'description' | 'isSure'>,
): Candidate {
  return {
    kind: 'drop',
    pointer,
    operations: [
      { op: 'test', path: pointer, value },
      { op: 'remove', path: pointer },
    ],
    description,
    change: { pointer, oldValue: value, newValue: undefined },
    isSure,
  };
}

/** A value in a description; lists and objects by kind only. */
export function show(value: Json): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === 'object') return 'an object';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** One thing that a value does wrong, as a JSON Schema validator reports it; keywords and params are ajv's. */
export interface SchemaFinding {
  /** To the field; to the missing or forbidden key itself where a key is too few or too many. */
  readonly pointer: string;
  /** Empty where the check did not come to an end. */
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}
