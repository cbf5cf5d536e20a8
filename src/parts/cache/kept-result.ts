/**
 * Stores the result of a call, and completes the step of an equal call with it. A result is stored under the key of the
 * spec of the instance that answered, with the files that the call has written and named, as they are then.
 *
 * A StepCall is the call of a step that a cached result may answer; a CachedCall is such a call with its keys and its
 * remaining time.
 */

import { type KeptResult, listOutputFiles, type MediaPlaces, relocate } from '@capstan/core/cache';
import type { CallEnd } from '@capstan/core/call/types';
import { type CancelSignal, onCancel } from '@capstan/core/cancellation';
import type { Decision } from '@capstan/core/contracts/decision';
import { type MediaPath, parseMediaReference } from '@capstan/core/contracts/media';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { CachedFrom } from '@capstan/core/contracts/run-step';
import type { CompiledStep } from '@capstan/core/definition/compile';
import type { ResolvedCache } from '@capstan/core/definition/step-settings';
import { isUnavailable } from '@capstan/core/errors/app-error';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { StepKey } from '../../db/attempt/attempt.ts';
import {
  type CachedResultRow,
  type CacheLookup,
  dropResult,
  storeResult,
} from '../../db/attempt/cached-result.ts';
import { endCachedStep } from '../../db/attempt/cached-step.ts';
import type { CallSecrets } from '../calls/routed-call.ts';
import type { RunContext } from '../definitions/run-context.ts';
import { attemptIdOf, decisionIdOf, newId } from '../ids.ts';
import { type CacheParts, type CallKeys, digestOf } from './call-key.ts';

/**
 * @returns SHA-256 by reference; null when the output names a file that is missing or is not a whole value, or when an
 * input file has changed: the call may have seen either version
 */
async function describeResult(
  ctx: Pick<CacheParts, 'media'>,
  output: Json,
  { places: { targets }, digests }: Pick<CallKeys, 'places' | 'digests'>,
): Promise<Readonly<Record<string, string>> | null> {
  const named = listOutputFiles(output);
  if (named === null) return null;
  const written = new Set(Object.values(targets));
  const files: Record<string, string> = {};
  for (const reference of new Set([...written, ...named, ...digests.keys()])) {
    const digest = await digestOf(ctx, reference);
    const read = written.has(reference) ? undefined : digests.get(reference);
    if (read !== undefined && digest !== read) return null;
    if (read !== undefined) continue; // the key holds it already
    if (digest !== null) files[reference] = digest;
    else if (named.has(reference)) return null;
  }
  return files;
}

/** Never fails the step, which has succeeded. @returns null when nothing is stored @throws when the database is away */
export async function keepResult(
  ctx: CacheParts,
  cached: CachedCall,
  { attempt, output }: SucceededCall,
): Promise<CachedResultRow | null> {
  if (attempt === null) return null;
  const { project_id, capability } = cached.lookup;
  const { instances } = ctx.fleet.seenBy(project_id).of(capability);
  const instance = instances.find(({ endpoint }) => endpoint === attempt.endpoint);
  const key = cached.keys.keys.get(instance?.spec_digest ?? '');
  if (instance === undefined || key === undefined) return null;
  try {
    return await store(ctx, cached, { attempt, output, instance, key });
  } catch (error) {
    ctx.logger.warn(
      { err: error, ...cached.stepCall.key },
      'a result was not cached; the next equal call is made again',
    );
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
  ctx: CacheParts,
  { lookup, keys, stepCall }: CachedCall,
  { attempt, output, instance, key }: Answered,
): Promise<CachedResultRow | null> {
  const files = await describeResult(ctx, output, keys);
  if (files === null) return null;
  const { keys: all, ...asked } = lookup;
  const attempt_id = attemptIdOf(attempt.decision.decision_id);
  const places = keys.places as unknown as JsonObject;
  // The owner of an instance sets its tags, so the result of a step with tags may name only the project's own files.
  const is_of_own_alone = (stepCall.step.definition.tags ?? []).length > 0;
  const result = { ...asked, led_key: all[0] ?? key, key, attempt_id, places, files, is_of_own_alone };
  if (!(await storeResult(ctx.db, result))) return null;
  const { run_id, step_id, item } = stepCall.key;
  const { instance_id, endpoint } = instance;
  const cost_nano = toNanoUsd(attempt.cost_usd).toString();
  return { key, run_id, step_id, item, attempt_id, instance_id, endpoint, cost_nano, output, places, files };
}

// Copies the files of a cached result to the paths of another call and checks their bytes. Existing files stay.

/** @returns the output for the call; null when a file is missing or has changed */
async function placeResult(
  ctx: Pick<CacheParts, 'media'>,
  { output, places, files }: Pick<CachedResultRow, 'output' | 'places' | 'files'>,
  asked: MediaPlaces,
): Promise<{ readonly output: Json } | null> {
  const kept = { output, places, files } as unknown as KeptResult;
  const relocation = relocate(kept, asked);
  for (const { reference, sha256 } of relocation.kept) {
    if ((await digestOf(ctx, reference)) !== sha256) return null;
  }
  for (const { from, to } of relocation.copies) {
    if (!(await copyFile(ctx, from, to))) return null;
  }
  return { output: relocation.output };
}

async function copyFile(
  ctx: Pick<CacheParts, 'media'>,
  { reference, sha256 }: { readonly reference: string; readonly sha256: string },
  to: string,
): Promise<boolean> {
  if ((await digestOf(ctx, to)) === sha256) return (await digestOf(ctx, reference)) === sha256;
  return (await ctx.media.copy(readPath(reference), readPath(to), sha256)) !== null;
}

function readPath(reference: string): MediaPath {
  const path = parseMediaReference(reference);
  if (path === null) throw new RangeError(`${reference} is no media reference`);
  return path;
}

// Ends a step with a cached result: its files are copied, then the step and its attempt are written.

/**
 * @returns null when the call has to be made: a file is missing or changed, which also expires the result, or the step
 * has ended
 */
export async function takeResult(
  ctx: CacheParts,
  cached: CachedCall,
  result: CachedResultRow,
): Promise<SucceededCall | null> {
  const { db, results } = ctx;
  const { key, context } = cached.stepCall;
  const placed = await place(ctx, cached, result);
  if (placed === 'changed') {
    await dropResult(db, { project_id: context.project_id, key: result.key }, result.attempt_id);
  }
  if (typeof placed === 'string') return null;
  const { output } = placed;
  const { run_id, step_id, item } = key;
  const attempt_id = newId('attempt');
  const duration_ms = cached.clock.passedMs();
  const { endpoint, instance_id, cost_nano: saved_nano } = result;
  const { lookup } = cached;
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
  if (number === 1 && item === 0) results.remember(run_id, step_id, { output, costUsd: 0 });
  return { kind: 'succeeded', output, attempt: { number, endpoint, cost_usd: 0, duration_ms, decision } };
}

/** A full or failing store is no evidence against the result; a database failure is transient. */
async function place(
  ctx: CacheParts,
  { keys, stepCall }: CachedCall,
  result: CachedResultRow,
): Promise<{ readonly output: Json } | 'changed' | 'failed'> {
  try {
    return (await placeResult(ctx, result, keys.places)) ?? 'changed';
  } catch (error) {
    if (isUnavailable(error)) throw error;
    ctx.logger.warn(
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

/** The attempt names the origin of the result; no instance was chosen. */
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

/** The call of a step with `cache`, or of one of its items. */
export interface StepCall {
  readonly policy: ResolvedCache;
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
  readonly input: JsonObject;
  readonly secrets?: Pick<CallSecrets, 'cacheKey'> | null;
}

export type SucceededCall = Extract<CallEnd, { kind: 'succeeded' }>;

interface Clock {
  readonly signal: CancelSignal;
  readonly passedMs: () => number;
  readonly leftMs: () => number;
}

/** A call on its way to a result. */
export interface CachedCall {
  readonly stepCall: StepCall;
  readonly keys: CallKeys;
  readonly lookup: CacheLookup;
  readonly clock: Clock;
}

export function startClock(remainingMs: number, signal: CancelSignal): Clock {
  const startedAt = performance.now();
  const passedMs = (): number => performance.now() - startedAt;
  return { signal, passedMs, leftMs: () => remainingMs - passedMs() };
}

/** The longest timer of Node. */
const longestTimerMs = 2_147_483_647;

/** Null when the time is over first, or the call is cancelled. */
export function within<Result>(waited: Promise<Result>, { signal, leftMs }: Clock): Promise<Result | null> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      stopListening();
    };
    const end = (result: Result | null): void => {
      stop();
      resolve(result);
    };
    const timer = setTimeout(() => end(null), Math.min(Math.max(0, leftMs()), longestTimerMs));
    let stopListening = (): void => undefined;
    stopListening = onCancel(signal, () => end(null));
    waited.then(end, (error) => {
      stop();
      reject(error);
    });
  });
}
