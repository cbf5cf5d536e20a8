/** Keeps the result of a call under the key that the instance makes of it that has answered. */
import type { Logger } from 'pino';
import type { JsonObject } from '../../contracts/primitives.ts';
import { toNanoUsd } from '../../core/money/nano-usd.ts';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import { type CachedResultRow, storeResult } from '../../db/cache/cached-result.ts';
import type { Db } from '../../db/connect.ts';
import { isUnavailable } from '../../errors/is-unavailable.ts';
import { attemptIdOf } from '../ids.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import type { FleetPoller } from '../routing/fleet/fleet-poller.ts';
import { describeResult } from './describe-result.ts';
import type { Passage, SucceededCall } from './step-call.ts';

export interface KeepDependencies {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'of'>;
  readonly media: Pick<MediaLibrary, 'head'>;
  readonly logger: Logger;
}

/** The step has succeeded, whatever becomes of this. @returns null when nothing is kept @throws where the database is away */
export async function keepResult(
  dependencies: KeepDependencies,
  passage: Passage,
  { attempt, output }: SucceededCall,
): Promise<CachedResultRow | null> {
  if (attempt === null) return null;
  const { instances } = dependencies.fleet.of(passage.lookup.capability);
  const instance = instances.find(({ endpoint }) => endpoint === attempt.endpoint);
  const key = passage.keys.keys.get(instance?.spec_digest ?? '');
  if (instance === undefined || key === undefined) return null;
  try {
    return await store(dependencies, passage, { attempt, output, instance, key });
  } catch (error) {
    dependencies.logger.warn({ err: error, ...passage.stepCall.key }, 'a result was not kept');
    if (isUnavailable(error)) throw error;
    return null;
  }
}

interface Answered {
  readonly attempt: NonNullable<SucceededCall['attempt']>;
  readonly output: SucceededCall['output'];
  readonly instance: InstanceSnapshot;
  readonly key: string;
}

async function store(
  { db, media }: KeepDependencies,
  { lookup, keys, stepCall }: Passage,
  { attempt, output, instance, key }: Answered,
): Promise<CachedResultRow | null> {
  const files = await describeResult(media, output, keys);
  if (files === null) return null;
  const { keys: all, ...asked } = lookup;
  const attempt_id = attemptIdOf(attempt.decision.decision_id);
  const places = keys.places as unknown as JsonObject;
  // Whoever registers an instance gives it its tags: in a result that a step's tags vouch for they are the project's own.
  const is_of_own_alone = (stepCall.step.definition.tags ?? []).length > 0;
  const result = { ...asked, led_key: all[0] ?? key, key, attempt_id, places, files, is_of_own_alone };
  if (!(await storeResult(db, result))) return null;
  const { run_id, step_id, item } = stepCall.key;
  const { instance_id, endpoint } = instance;
  const cost_nano = toNanoUsd(attempt.cost_usd).toString();
  return { key, run_id, step_id, item, attempt_id, instance_id, endpoint, cost_nano, output, places, files };
}
