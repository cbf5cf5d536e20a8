/**
 * What may be wrong with a step beside its calls: its `when` and its `for_each`, which say whether it happens and
 * how often, once their values are known; and a run of another pipeline: how deep such runs may be, and what the
 * end of one means for the step.
 */
import { deepestSubRun, mostItems } from '../../contracts/bounds.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
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

/** @param depth runs above it @returns why a run may not start there; null = it may */
export function findDepthFault(depth: number): (Failure & { readonly code: ErrorCode }) | null {
  if (depth <= deepestSubRun) return null;
  const message = `pipelines in pipelines: ${depth} runs deep; allowed are ${deepestSubRun}`;
  return { code: 'definition_invalid', message };
}

interface UnsuccessfulRun {
  readonly run_id: string;
  /** `name@version`, or as the step writes it. */
  readonly pipeline: string;
  readonly state: string;
  /** Null = it was cancelled without one. */
  readonly error: Failure | null;
}

/** The step's failure when its run did not succeed. */
export function toSubRunFailure({ run_id, pipeline, state, error }: UnsuccessfulRun): Failure {
  const why = error === null ? '' : `: ${error.message}`;
  return {
    code: 'sub_run_failed' satisfies ErrorCode,
    message: `run ${run_id} of ${pipeline} ended as ${state}${why}`,
    details: { run_id, code: error?.code ?? 'run_cancelled' },
  };
}

/** What is wrong with a run that could not be started is the step's failure. */
export function toStartFailure(reference: string, { code, message }: Failure): Failure {
  return { code, message: `${reference}: ${message}` };
}
