/** A step that is a run of another pipeline: how deep such runs may be, and what the end of one means for the step. */
import { deepestSubRun } from '../../contracts/bounds.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure } from '../../contracts/primitives.ts';

/** @param depth runs above it @returns why a run may not start there; null = it may */
export function findDepthFault(depth: number): (Failure & { readonly code: ErrorCode }) | null {
  if (depth <= deepestSubRun) return null;
  const message = `pipelines in pipelines: ${depth} runs deep; allowed are ${deepestSubRun}`;
  return { code: 'definition_invalid', message };
}

export interface UnsuccessfulRun {
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
