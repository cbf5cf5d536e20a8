/**
 * The pure part of `capstan apply`: what the files want and what the server has, as changes. A kind without a section in
 * the files is not managed. Fields that a file leaves to people, such as `paused`, stay as the server has them.
 */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { findDifferences } from '@capstan/core/definitions/submission';

/** An object as a file declares it. */
export interface DeclaredObject {
  readonly name: string;
  /** The name for people, without values of variables. Default: the name. */
  readonly shown?: string;
  readonly value: JsonObject;
  /** Is sent at creation; no answer holds it. */
  readonly secret?: string | undefined;
}

/** An object as the server has it. */
export interface ServerObject {
  readonly name: string;
  readonly shown?: string;
  readonly value: JsonObject;
  readonly id?: string;
  /** It always exists. */
  readonly isPermanent?: boolean;
}

export interface FieldChange {
  /** JSON Pointer. */
  readonly field: string;
  readonly from: Json;
  readonly to: Json;
}

export type ObjectChange =
  | { readonly action: 'create'; readonly wanted: DeclaredObject }
  | {
      readonly action: 'change';
      readonly wanted: DeclaredObject;
      readonly found: ServerObject;
      readonly fields: readonly FieldChange[];
    }
  | { readonly action: 'delete'; readonly found: ServerObject }
  | { readonly action: 'unchanged'; readonly wanted: DeclaredObject; readonly found: ServerObject };

/** Fields that a file may leave to people, with their value in a new object. */
type Switches = Readonly<Record<string, Json>>;

function complete(
  wanted: DeclaredObject,
  switches: Switches,
  found: ServerObject | undefined,
): DeclaredObject {
  const left = Object.entries(switches).filter(([field]) => wanted.value[field] === undefined);
  const values = left.map(([field, initial]) => [field, found?.value[field] ?? initial]);
  return { ...wanted, value: { ...wanted.value, ...Object.fromEntries(values) } };
}

function compare(
  declared: DeclaredObject,
  found: ServerObject | undefined,
  switches: Switches,
): ObjectChange {
  const wanted = complete(declared, switches, found);
  if (found === undefined) return { action: 'create', wanted };
  const fields = findDifferences(found.value, wanted.value).map(({ pointer, stored, submitted }) => ({
    field: pointer,
    from: stored ?? null,
    to: submitted ?? null,
  }));
  return fields.length === 0
    ? { action: 'unchanged', wanted, found }
    : { action: 'change', wanted, found, fields };
}

/** @param prune also deletes what no file declares */
export function findChanges(
  wanted: readonly DeclaredObject[],
  found: readonly ServerObject[],
  { switches, prune }: { readonly switches: Switches; readonly prune: boolean },
): ObjectChange[] {
  const known = new Map<string, ServerObject>();
  // Of several with one name, the first is the object, and the others are no part of the files.
  for (const one of found) if (!known.has(one.name)) known.set(one.name, one);
  const names = new Set(wanted.map(({ name }) => name));
  const isLeftOver = (one: ServerObject): boolean =>
    one.isPermanent !== true && !(names.has(one.name) && known.get(one.name) === one);
  const extra = prune ? found.filter(isLeftOver) : [];
  return [
    ...wanted.map((one) => compare(one, known.get(one.name), switches)),
    ...extra.map((one) => ({ action: 'delete' as const, found: one })),
  ];
}
