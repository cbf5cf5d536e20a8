/**
 * Calls of steps that use the results of equal calls. A cached result completes the step. Otherwise one caller, the
 * leader, makes the call and the others wait for it: in memory within this process, by one query for calls of other
 * processes. If the leader has no result, the next one leads; a caller that has waited twice without a result makes its
 * own call. When the database is unreachable, all waiting calls fail with its error, so that none of them pays for that
 * reason.
 */

import { type CancelSignal, CancelSource } from '@capstan/core/cancellation';
import { capabilityOf } from '@capstan/core/definition/step-settings';
import { isUnavailable } from '@capstan/core/errors/app-error';
import { joinFlight } from '@capstan/core/pacing';
import {
  type CachedResultRow,
  type CacheKey,
  type CacheLookup,
  listDecidedKeys,
  lookUpResult,
  releaseLead,
} from '../../db/attempt/cached-result.ts';
import { type CacheParts, type CallKeys, keyCall } from './call-key.ts';
import {
  type CachedCall,
  keepResult,
  type StepCall,
  type SucceededCall,
  startClock,
  takeResult,
  within,
} from './kept-result.ts';

type MakeCall<End> = (remainingMs: number) => Promise<End | SucceededCall>;

interface CallTime {
  readonly remainingMs: number;
  readonly signal: CancelSignal;
}

interface CacheCtx extends CacheParts {
  /** Calls in flight in this process, by their keys. Null: no result. */
  readonly flights: Map<string, Promise<CachedResultRow | null>>;
  readonly watch: LeaderWatch;
}

/** The call is over: its clock only has to run. */
const keepingMs = 60_000;

export type CachedCalls = ReturnType<typeof createCachedCalls>;

export function createCachedCalls(parts: CacheParts) {
  const watch = createLeaderWatch(parts);
  const ctx: CacheCtx = { ...parts, watch, flights: new Map() };
  return {
    /** @param call makes the call, in the remaining time */
    throughCache: async <End extends { readonly kind: string }>(
      stepCall: StepCall,
      { remainingMs, signal }: CallTime,
      call: MakeCall<End>,
    ): Promise<End | SucceededCall> => {
      const clock = startClock(remainingMs, signal);
      const keys = await readKeys(ctx, stepCall);
      if (keys === null) return call(clock.leftMs());
      const lookup = toLookup(stepCall, keys);
      return callThroughCache(ctx, { stepCall, keys, lookup, clock }, call);
    },
    /** Keeps the result of a call that another process, or an earlier execution, has begun. */
    keep: async (stepCall: StepCall, end: SucceededCall): Promise<void> => {
      const keys = await readKeys(ctx, stepCall);
      if (keys === null) return;
      const clock = startClock(keepingMs, new CancelSource());
      await keepResult(ctx, { stepCall, keys, lookup: toLookup(stepCall, keys), clock }, end);
    },
    close: watch.close,
  };
}

/** A failed lookup does not prevent the call, unless the failure of the database is transient. */
async function readKeys(
  ctx: CacheParts,
  { context, step, key, input, secrets, policy }: StepCall,
): Promise<CallKeys | null> {
  const call = {
    projectId: context.project_id,
    run: context,
    step: step.definition,
    input,
    secrets: secrets?.cacheKey,
    policy,
  };
  try {
    return await keyCall(ctx, call);
  } catch (error) {
    if (isUnavailable(error)) throw error;
    ctx.logger.warn({ err: error, ...key }, 'a call is made: its key could not be read');
    return null;
  }
}

function toLookup({ context, step, key, policy: { ttlMs } }: StepCall, { keys }: CallKeys): CacheLookup {
  return {
    project_id: context.project_id,
    keys: [...keys.values()],
    step: key,
    pipeline: context.pipeline,
    capability: capabilityOf(step.definition),
    ttl_ms: ttlMs,
  };
}

/** After this many leaders without a result, the call is made without one. */
const mostLeaders = 2;

async function callThroughCache<End extends { readonly kind: string }>(
  ctx: CacheCtx,
  cached: CachedCall,
  call: MakeCall<End>,
): Promise<End | SucceededCall> {
  const { lookup, clock } = cached;
  const name = JSON.stringify([lookup.project_id, lookup.keys, lookup.ttl_ms]);
  for (let leaders = 0; leaders < mostLeaders && clock.leftMs() > 0 && !clock.signal.aborted; leaders++) {
    const own: Lead<End> = { isLeader: false, made: null };
    const flight = joinFlight(ctx.flights, name, () => callAsLeader(ctx, cached, { call, own }));
    const result = own.isLeader ? await flight.catch(passOn(own)) : await within(flight, clock).catch(toNone);
    if (own.made !== null) return own.made;
    const taken = result === null ? null : await takeResult(ctx, cached, result);
    if (taken !== null) return taken;
  }
  return call(clock.leftMs());
}

/** The leading caller has a call and an end of its own. */
interface Lead<End> {
  isLeader: boolean;
  /** Null: the call was not made. */
  made: Promise<End | SucceededCall> | null;
}

/** The end of a call that was made counts, even if its result could not be stored. */
function passOn(own: Lead<unknown>) {
  return (error: unknown): null => {
    if (own.made === null) throw error;
    return null;
  };
}

/** Another caller's failure is no result, unless the database is away. */
function toNone(error: unknown): null {
  if (isUnavailable(error)) throw error;
  return null;
}

/** @returns null when there is no cached result and the call's result is not stored */
async function callAsLeader<End extends { readonly kind: string }>(
  ctx: CacheCtx,
  cached: CachedCall,
  { call, own }: { readonly call: MakeCall<End>; readonly own: Lead<End> },
): Promise<CachedResultRow | null> {
  own.isLeader = true;
  const found = await findOrLead(ctx, cached);
  if (found !== 'lead') return found;
  own.made = call(cached.clock.leftMs());
  let kept: CachedResultRow | null = null;
  try {
    const end = await own.made;
    if (isSucceeded(end)) kept = await keepResult(ctx, cached, end);
    return kept;
  } finally {
    if (kept === null) await release(ctx, cached);
  }
}

/** @returns null when no time is left */
async function findOrLead(
  { db, watch }: CacheCtx,
  { lookup, clock }: CachedCall,
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

function isSucceeded(end: { readonly kind: string }): end is SucceededCall {
  return end.kind === 'succeeded';
}

async function release({ db, logger }: CacheParts, { lookup }: CachedCall): Promise<void> {
  const { project_id, keys, step } = lookup;
  try {
    await releaseLead(db, { project_id, key: keys[0] ?? '' }, step);
  } catch (error) {
    logger.warn(
      { err: error, ...step },
      'a call without a result was not released; equal calls wait some seconds',
    );
  }
}

interface LeaderWatch {
  /** Resolves when there is a result, or no process makes the call any more, or the watch is closed. */
  decided(key: CacheKey): Promise<void>;
  close(): void;
}

const pauseMs = 100;

/**
 * Watches calls of other processes: one query serves all waiting calls of this process; without one there is no query.
 */
function createLeaderWatch({ db, logger }: CacheParts): LeaderWatch {
  const waiting = new Map<string, { readonly key: CacheKey; readonly tell: (() => void)[] }>();
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;
  const nameOf = ({ project_id, key }: CacheKey): string => `${project_id} ${key}`;

  const tell = (key: CacheKey): void => {
    const told = waiting.get(nameOf(key))?.tell ?? [];
    waiting.delete(nameOf(key));
    for (const one of told) one();
  };
  const look = async (): Promise<void> => {
    const keys = [...waiting.values()].map(({ key }) => key);
    try {
      for (const key of await listDecidedKeys(db, keys)) tell(key);
    } catch (error) {
      logger.warn({ err: error }, 'results of other calls could not be read; waiting calls keep waiting');
    }
    schedule();
  };
  const schedule = (): void => {
    timer = isClosed || waiting.size === 0 ? null : setTimeout(look, pauseMs).unref();
  };

  return {
    decided: (key) =>
      new Promise((resolve) => {
        if (isClosed) return resolve();
        const known = waiting.get(nameOf(key));
        if (known === undefined) waiting.set(nameOf(key), { key, tell: [resolve] });
        else known.tell.push(resolve);
        if (timer === null) schedule();
      }),
    close: () => {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      for (const { key } of [...waiting.values()]) tell(key);
    },
  };
}
