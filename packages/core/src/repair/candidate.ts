/** The findings of a validator, and candidate repairs of one change each. */
import type { Json } from '../contracts/primitives.ts';
import type { PatchOperation } from '../json/patch.ts';

export type RepairKind = 'rename' | 'move' | 'coerce' | 'wrap' | 'clamp' | 'respell' | 'drop' | 'fill';

/**
 * `certain`: the author can have meant nothing else, if nothing else is as certain. `likely`: as good as any other.
 * `guess`: valid and near, but it may lose or invent something, so it is only shown, and only beside nothing certain.
 */
export type Certainty = 'certain' | 'likely' | 'guess';

/** One change that may repair the input; only the schema decides whether it does. */
export interface Candidate {
  readonly kind: RepairKind;
  /** How the value is read or written, within its kind. Candidates of one way do the same to other values. */
  readonly way: string;
  /** Pointer of the fault in the input. */
  readonly pointer: string;
  /** Includes the `test` that guards it, where it depends on the old value. */
  readonly operations: readonly PatchOperation[];
  /** A sentence: the change, and the reason for it. */
  readonly description: string;
  /** The changed value: the same value twice for a move, undefined for an absent old or new value. */
  readonly change: {
    readonly pointer: string;
    readonly oldValue: Json | undefined;
    readonly newValue: Json | undefined;
  };
  readonly evidence: Certainty;
}

interface Replacement {
  readonly way: string;
  readonly pointer: string;
  readonly oldValue: Json;
  readonly newValue: Json;
  /** The change, without the pointer. */
  readonly description: string;
  readonly reason: string;
  readonly evidence: Certainty;
  /** Whether it is still the same value, as in a list of it. Default: false. */
  readonly isSame?: boolean;
}

export function replaceValue(kind: RepairKind, replacement: Replacement): Candidate {
  const { way, pointer, oldValue, newValue, description, reason, evidence, isSame = false } = replacement;
  return {
    kind,
    way,
    pointer,
    operations: [
      { op: 'test', path: pointer, value: oldValue },
      { op: 'replace', path: pointer, value: newValue },
    ],
    description: `${description} at ${pointer}, because ${reason}`,
    change: { pointer, oldValue, newValue: isSame ? oldValue : newValue },
    evidence,
  };
}

/** @param reason why the key may be absent, or should */
export function removeKey(
  pointer: string,
  value: Json,
  { way, reason, evidence }: Pick<Replacement, 'way' | 'reason' | 'evidence'>,
): Candidate {
  return {
    kind: 'drop',
    way,
    pointer,
    operations: [
      { op: 'test', path: pointer, value },
      { op: 'remove', path: pointer },
    ],
    description: `leave out ${pointer}, because ${reason}`,
    change: { pointer, oldValue: value, newValue: undefined },
    evidence,
  };
}

interface Transfer {
  readonly way: string;
  readonly from: string;
  readonly to: string;
  readonly value: Json;
  readonly description: string;
  readonly evidence: Certainty;
}

/** Moves a value as it is. */
export function moveValue(kind: RepairKind, transfer: Transfer): Candidate {
  const { way, from, to, value, description, evidence } = transfer;
  return {
    kind,
    way,
    pointer: from,
    operations: [{ op: 'move', from, path: to }],
    description,
    change: { pointer: from, oldValue: value, newValue: value },
    evidence,
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
