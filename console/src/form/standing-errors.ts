import type { Json } from '../../../src/contracts/primitives.ts';
import { isEqual } from '../../../src/core/expression/compare.ts';
import { valueAt } from '../../../src/core/json/patch.ts';
import type { SchemaPointerError } from '../api/schema-pointer-error.ts';

/** What the server found in a value. */
export interface FormVerdict {
  readonly errors: readonly SchemaPointerError[];
  /** The value as it was when the server looked at it. */
  readonly judged: Json;
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isEqual(one, other);
}

/** An error stands at its field until that field, or what contains it, has become another; the verdict is the server's. */
export function standingErrors({ errors, judged }: FormVerdict, value: Json): SchemaPointerError[] {
  return errors.filter(({ pointer }) => isSame(valueAt(judged, pointer), valueAt(value, pointer)));
}
