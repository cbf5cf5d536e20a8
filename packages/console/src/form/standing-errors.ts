import type { Json } from '@capstan/core/contracts/primitives';
import { isEqual } from '@capstan/core/expression/compare';
import { valueAt } from '@capstan/core/json/patch';
import type { SchemaPointerError } from '../api/schema-pointer-error.ts';

/** The server's findings about a value. */
export interface FormVerdict {
  readonly errors: readonly SchemaPointerError[];
  /** The value that the server checked. */
  readonly judged: Json;
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isEqual(one, other);
}

/** An error stays at its field until the field, or its container, changes; only the server decides on validity. */
export function standingErrors({ errors, judged }: FormVerdict, value: Json): SchemaPointerError[] {
  return errors.filter(({ pointer }) => isSame(valueAt(judged, pointer), valueAt(value, pointer)));
}
