/**
 * Calls of steps that take results of equal calls: a result that is kept ends the step; else one makes the call and all
 * others wait for it, in this process in memory, for those of other processes by one look at the database. Who leads
 * and comes to nothing makes room for the next; who has waited twice in vain makes the call on its own. A database that
 * is not there says nothing of a result: the error goes up for all who wait, so that none of them pays for that reason.
 */

import type { CancelSignal } from '../../core/cancellation.ts';
import { capabilityOf, type ResolvedCache, resolveCache } from '../../core/definition/step-settings.ts';
import {
  type CachedResultRow,
  type CacheLookup,
  lookUpResult,
  releaseLead,
} from '../../db/attempt/cached-result.ts';
import { isUnavailable } from '../../errors/app-error.ts';
import { type CallKeys, type KeyDependencies, keyCall } from './call-key.ts';
import {
  type KeepDependencies,
  keepResult,
  type Passage,
  type StepCall,
  type SucceededCall,
  startClock,
  type TakeDependencies,
  takeResult,
  within,
} from './kept-result.ts';
import {
  createLeaderWatch,
  createSharedFlights,
  type Flight,
  type LeaderWatch,
  type SharedFlights,
} from './shared-calls.ts';

export type CacheDependencies = KeyDependencies & KeepDependencies & TakeDependencies;

type MakeCall<End> = (remainingMs: number) => Promise<End | SucceededCall>;

/** @param call makes it, in the time that is left */
export type ThroughCache = <End extends { readonly kind: string }>(
  stepCall: StepCall,
  time: { readonly remainingMs: number; readonly signal: CancelSignal },
  call: MakeCall<End>,
) => Promise<End | SucceededCall>;

export interface CachedCalls {
  readonly throughCache: ThroughCache;
  close(): void;
}

interface Workings {
  readonly dependencies: CacheDependencies;
  readonly flights: SharedFlights<CachedResultRow>;
  readonly watch: LeaderWatch;
}

export function createCachedCalls(dependencies: CacheDependencies): CachedCalls {
  const watch = createLeaderWatch(dependencies);
  const workings: Workings = { dependencies, watch, flights: createSharedFlights() };
  return {
    throughCache: async (stepCall, { remainingMs, signal }, call) => {
      const { context, step, key } = stepCall;
      const policy = key.revision > 0 ? null : resolveCache(context.definition, step.definition);
      if (policy === null) return call(remainingMs);
      const clock = startClock(remainingMs, signal);
      const keys = await readKeys(dependencies, stepCall, policy);
      if (keys === null) return call(clock.leftMs());
      const lookup = toLookup(stepCall, policy, keys);
      return passThrough(workings, { stepCall, keys, lookup, clock }, call);
    },
    close: watch.close,
  };
}

/** What cannot be read is no reason to keep a call from being made, unless the database will be there in a moment. */
async function readKeys(
  dependencies: CacheDependencies,
  { context, step, key, input }: StepCall,
  policy: ResolvedCache,
): Promise<CallKeys | null> {
  const call = { projectId: context.project_id, run: context, step: step.definition, input, policy };
  try {
    return await keyCall(dependencies, call);
  } catch (error) {
    if (isUnavailable(error)) throw error;
    dependencies.logger.warn({ err: error, ...key }, 'a call is made: its key could not be read');
    return null;
  }
}

function toLookup(
  { context, step, key }: StepCall,
  { ttlMs }: ResolvedCache,
  { keys }: CallKeys,
): CacheLookup {
  return {
    project_id: context.project_id,
    keys: [...keys.values()],
    step: key,
    pipeline: context.pipeline,
    capability: capabilityOf(step.definition),
    ttl_ms: ttlMs,
  };
}

/** Leaders that may come to nothing before the call is made without one. */
const mostLeaders = 2;

async function passThrough<End extends { readonly kind: string }>(
  workings: Workings,
  passage: Passage,
  call: MakeCall<End>,
): Promise<End | SucceededCall> {
  const { lookup, clock } = passage;
  const name = JSON.stringify([lookup.project_id, lookup.keys, lookup.ttl_ms]);
  for (let leaders = 0; leaders < mostLeaders && clock.leftMs() > 0 && !clock.signal.aborted; leaders++) {
    const { flight, isOwn } = workings.flights.join(name);
    const end = isOwn
      ? await fly(workings, passage, { call, flight })
      : await takeFrom(workings, passage, await within(flight.ended, clock));
    if (end !== null) return end;
  }
  return call(clock.leftMs());
}

async function takeFrom(
  { dependencies }: Workings,
  passage: Passage,
  result: CachedResultRow | null,
): Promise<SucceededCall | null> {
  return result === null ? null : takeResult(dependencies, passage, result);
}

interface OwnFlight<End> {
  readonly call: MakeCall<End>;
  readonly flight: Flight<CachedResultRow>;
}

/** @returns null when neither a result was taken nor the call was made */
async function fly<End extends { readonly kind: string }>(
  workings: Workings,
  passage: Passage,
  own: OwnFlight<End>,
): Promise<End | SucceededCall | null> {
  const { flight } = own;
  try {
    const found = await findOrLead(workings, passage);
    if (found === 'lead') return await lead(workings, passage, own);
    flight.end(found);
    return await takeFrom(workings, passage, found);
  } catch (error) {
    if (isUnavailable(error)) flight.fail(error);
    throw error;
  } finally {
    flight.end(null);
  }
}

/** @returns null when there is no time left */
async function findOrLead(
  { dependencies: { db }, watch }: Workings,
  { lookup, clock }: Passage,
): Promise<CachedResultRow | 'lead' | null> {
  const { project_id, keys } = lookup;
  while (clock.leftMs() > 0 && !clock.signal.aborted) {
    const found = await lookUpResult(db, lookup);
    if (found.kind === 'hit') return found.result;
    if (found.kind === 'lead') return 'lead';
    await within(watch.decided({ project_id, key: keys[0] ?? '' }), clock);
  }
  return null;
}

/** Those who wait in this process are told when the others can know it too. */
async function lead<End extends { readonly kind: string }>(
  { dependencies }: Workings,
  passage: Passage,
  { call, flight }: OwnFlight<End>,
): Promise<End | SucceededCall> {
  let kept: CachedResultRow | null = null;
  try {
    const end = await call(passage.clock.leftMs());
    if (isSucceeded(end)) {
      kept = await keepResult(dependencies, passage, end).catch((error: unknown) => {
        flight.fail(error);
        return null;
      });
    }
    return end;
  } finally {
    if (kept === null) await release(dependencies, passage);
    else flight.end(kept);
  }
}

function isSucceeded(end: { readonly kind: string }): end is SucceededCall {
  return end.kind === 'succeeded';
}

async function release({ db, logger }: CacheDependencies, { lookup }: Passage): Promise<void> {
  const { project_id, keys, step } = lookup;
  try {
    await releaseLead(db, { project_id, key: keys[0] ?? '' }, step);
  } catch (error) {
    logger.warn({ err: error, ...step }, 'others wait some seconds for a call that came to nothing');
  }
}
