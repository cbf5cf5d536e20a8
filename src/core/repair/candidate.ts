/** The findings of a validator, and candidate repairs of one operation each. */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { PatchOperation } from '../json/patch.ts';

export type RepairKind = 'rename' | 'move' | 'coerce' | 'wrap' | 'clamp' | 'respell' | 'drop' | 'fill';

/** One operation that may repair the input; only the schema decides whether it does. */
export interface Candidate {
  readonly kind: RepairKind;
  /** Pointer of the fault in the input. */
  readonly pointer: string;
  /** Includes the `test` that guards it, where it depends on the old value. */
  readonly operations: readonly PatchOperation[];
  readonly description: string;
  /** The changed value: the same value twice for a move, undefined for an absent old or new value. */
  readonly change: {
    readonly pointer: string;
    readonly oldValue: Json | undefined;
    readonly newValue: Json | undefined;
  };
  /** False: it may be shown, but the author may well have meant something else. */
  readonly isSure: boolean;
}

/** The input to repair, and its schema. */
export interface Broken {
  readonly schema: JsonObject;
  readonly input: Json;
}

interface Replacement {
  readonly pointer: string;
  readonly oldValue: Json;
  readonly newValue: Json;
  /** Does not include the pointer. */
  readonly description: string;
  /** Default: true. */
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

/** @param description the sentence, including the pointer and the reason */
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

/** One fault of a value, as a JSON Schema validator reports it; keywords and params are ajv's. */
export interface SchemaFinding {
  /** Pointer to the field; for a missing or forbidden key, to the key itself. */
  readonly pointer: string;
  /** Empty when the check did not finish. */
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}
