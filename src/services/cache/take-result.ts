/** Ends a step with a result that was kept: its files are put in place, then the step and its attempt are written. */
import type { Logger } from 'pino';
import type { Decision } from '../../contracts/decision.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { CachedFrom } from '../../contracts/run.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { type CachedResultRow, dropResult } from '../../db/cache/cached-result.ts';
import { endCachedStep } from '../../db/cache/cached-step.ts';
import type { Db } from '../../db/connect.ts';
import { isUnavailable } from '../../errors/is-unavailable.ts';
import { decisionIdOf, newId } from '../ids.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import type { StepResults } from '../run-data/step-results.ts';
import { placeResult } from './place-result.ts';
import type { Passage, SucceededCall } from './step-call.ts';

export interface TakeDependencies {
  readonly db: Db;
  readonly media: Pick<MediaLibrary, 'head' | 'copy'>;
  readonly results: Pick<StepResults, 'remember'>;
  readonly logger: Logger;
}

/** @returns null when the call has to be made: a file is gone or changed, which ends the result too, or the step has ended */
export async function takeResult(
  dependencies: TakeDependencies,
  passage: Passage,
  result: CachedResultRow,
): Promise<SucceededCall | null> {
  const { db, results } = dependencies;
  const { key, context } = passage.stepCall;
  const placed = await place(dependencies, passage, result);
  if (placed === 'changed') {
    await dropResult(db, { project_id: context.project_id, key: result.key }, result.attempt_id);
  }
  if (typeof placed === 'string') return null;
  const { output } = placed;
  const { run_id, step_id, item } = key;
  const attempt_id = newId('attempt');
  const duration_ms = passage.clock.passedMs();
  const { endpoint, instance_id, cost_nano: saved_nano } = result;
  const { lookup } = passage;
  const taken = { attempt_id, instance_id, endpoint, output, saved_nano, duration_ms };
  const cached_from = toOrigin(result);
  const decision = explain(attempt_id, cached_from);
  const { project_id, capability } = lookup;
  const data: JsonObject = { endpoint, cost_usd: 0, duration_ms, error: null };
  const number = await endCachedStep(db, {
    ...taken,
    step: key,
    project_id,
    capability,
    cached_from,
    decision,
    data,
  });
  if (number === undefined) return null;
  if (number === 1 && item === 0) results.remember(run_id, step_id, output, 0);
  return { kind: 'succeeded', output, attempt: { number, endpoint, cost_usd: 0, duration_ms, decision } };
}

/** A store that fails, or is full, says nothing of the result; the database will be there in a moment. */
async function place(
  { media, logger }: TakeDependencies,
  { keys, stepCall }: Passage,
  result: CachedResultRow,
): Promise<{ readonly output: Json } | 'changed' | 'failed'> {
  try {
    return (await placeResult(media, result, keys.places)) ?? 'changed';
  } catch (error) {
    if (isUnavailable(error)) throw error;
    logger.warn(
      { err: error, ...stepCall.key },
      'a call is made: the files of its result could not be placed',
    );
    return 'failed';
  }
}

function toOrigin({ run_id, step_id, item, attempt_id, cost_nano }: CachedResultRow): CachedFrom {
  const saved_usd = fromNanoUsd(BigInt(cost_nano));
  return { run_id, step_id, ...(item === 0 ? {} : { item }), attempt_id, saved_usd };
}

/** The result's own origin is in the attempt; nobody was chosen. */
function explain(attemptId: string, { run_id, step_id }: CachedFrom): Decision {
  return {
    decision_id: decisionIdOf(attemptId),
    chosen: null,
    reason: `cached: the result of step ${step_id} of ${run_id}, an equal call`,
    candidates: [],
    reserved_usd: 0,
    settled_usd: 0,
  };
}
