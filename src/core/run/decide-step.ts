/** Whether a step happens, and how often: what its `when` and its `for_each` say, once their values are known. */
import { mostItems } from '../../contracts/bounds.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import { describeValue } from '../expression/evaluation.ts';

/** A value of a run's expressions, or why there is none: a failure of the step, never of the process. */
export type Evaluated<Value> = { readonly value: Value } | { readonly error: Failure };

/** The list of a `for_each`. */
export function toItems(value: Json): Evaluated<readonly Json[]> {
  if (!Array.isArray(value)) {
    const message = `a list is needed, not ${describeValue(value)}`;
    return { error: { code: 'expression_unresolved', message } };
  }
  if (value.length <= mostItems) return { value };
  const message = `${value.length} items; at most ${mostItems} are allowed`;
  return { error: { code: 'too_many_items', message } };
}

/** @param where the part of the step that could not be worked out */
export function refuseStep(
  where: 'when' | 'for_each.items',
  { code, message }: Failure,
): { readonly type: 'fail'; readonly error: Failure } {
  return { type: 'fail', error: { code, message: `${where}: ${message}` } };
}
