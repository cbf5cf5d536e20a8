/**
 * Direct calls that take the answer of an equal call, by the rules of the cache of steps: calls are equal if project,
 * capability, version, spec, tags, input and the bytes of named files are. A call that writes files, and an answer that
 * names files, is never cached. Equal calls at the same time are all made. A cache that fails never fails a call,
 * unless the database is away.
 */

import { listOutputFiles } from '@capstan/core/cache';
import type { CallingKey } from '@capstan/core/call/caller';
import type { ExecAnswer, ExecRequest } from '@capstan/core/contracts/decision';
import { isUnavailable } from '@capstan/core/errors/app-error';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { Ctx, ServerCtx } from '../../context.ts';
import {
  type CachedAnswerRow,
  findCachedAnswer,
  recordTakenAnswer,
  storeCachedAnswer,
} from '../../db/attempt/cached-answer.ts';
import { keyInput } from '../../parts/cache/call-key.ts';
import { attemptIdOf, decisionIdOf, newId } from '../../parts/ids.ts';

export type AnswerCacheCtx = Pick<Ctx, 'db' | 'logger' | 'fleet' | 'validator' | 'media' | 'ownMedia'> &
  Pick<ServerCtx, 'answerKeeper'>;

interface AskedCall {
  readonly projectId: string;
  readonly capability: string;
  readonly caller: CallingKey;
  readonly request: ExecRequest;
  /** Receives why the answer is not kept. */
  readonly onNotKept?: ((reason: string) => void) | undefined;
}

/** By the digest of the spec. */
type AnswerKeys = ReadonlyMap<string, string>;

async function keyAnswer(
  ctx: AnswerCacheCtx,
  { projectId, capability, request }: AskedCall,
): Promise<AnswerKeys | null> {
  const { input, version = null, tags, cache } = request;
  const target = { capability, versionRange: version, tags };
  const insists = cache?.insist === true;
  const keyed = await keyInput(ctx, { projectId, scope: ['project'], target, input, insists });
  return keyed === null || Object.keys(keyed.places.targets).length > 0 ? null : keyed.keys;
}

/** @returns null when the step is left out, because it failed */
async function attemptStep<Result>(
  { logger }: AnswerCacheCtx,
  { words, work }: { readonly words: string; readonly work: () => Promise<Result> },
): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (isUnavailable(error)) throw error;
    logger.warn({ err: error }, words);
    return null;
  }
}

/** Answers with a cached answer, at no cost. */
async function take(
  { db }: AnswerCacheCtx,
  { projectId: project_id, capability, caller: { scopes } }: AskedCall,
  { found, duration_ms }: { readonly found: CachedAnswerRow; readonly duration_ms: number },
): Promise<ExecAnswer> {
  const { instance_id, endpoint, cost_nano: saved_nano, output } = found;
  const attempt_id = newId('attempt');
  const from = decisionIdOf(found.attempt_id);
  const saved_usd = fromNanoUsd(BigInt(saved_nano));
  const decision = {
    decision_id: decisionIdOf(attempt_id),
    chosen: null,
    reason: `cached: the answer of an equal call, whose decision is ${from}`,
    candidates: [],
    reserved_usd: 0,
    settled_usd: 0,
    cached: { decision_id: from, saved_usd },
  };
  await recordTakenAnswer(db, {
    attempt_id,
    project_id,
    key: newId('call'),
    capability,
    instance_id,
    endpoint,
    cached_from: { attempt_id: found.attempt_id, saved_usd },
    saved_nano,
    duration_ms,
    decision,
    scopes,
  });
  return { ok: true, output, routing: decision };
}

async function keep(
  { db, fleet, answerKeeper }: AnswerCacheCtx,
  { projectId: project_id, capability, request: { tags, cache }, onNotKept }: AskedCall,
  { keys, answer }: { readonly keys: AnswerKeys; readonly answer: ExecAnswer },
): Promise<void> {
  const { output, routing } = answer;
  const files = listOutputFiles(output);
  const instance = fleet
    .seenBy(project_id)
    .of(capability)
    .instances.find(({ endpoint }) => endpoint === routing.chosen);
  const key = keys.get(instance?.spec_digest ?? '');
  if (files === null || files.size > 0 || instance === undefined || key === undefined) return;
  const fault = answerKeeper.findFault(project_id, output);
  if (fault !== null) return onNotKept?.(fault);
  await storeCachedAnswer(db, {
    project_id,
    key,
    capability,
    attempt_id: attemptIdOf(routing.decision_id),
    instance_id: instance.instance_id,
    endpoint: instance.endpoint,
    cost_nano: toNanoUsd(routing.settled_usd ?? 0).toString(),
    output,
    ttl_ms: (cache?.ttl_seconds ?? 0) * 1_000,
    // As for steps: the owner of an instance sets its tags.
    is_of_own_alone: tags.length > 0,
  });
}

/** @param call makes the call @throws what `call` throws */
export async function throughAnswerCache(
  ctx: AnswerCacheCtx,
  asked: AskedCall,
  call: () => Promise<ExecAnswer>,
): Promise<ExecAnswer> {
  const { cache } = asked.request;
  if (cache === undefined) return call();
  const startedAt = performance.now();
  const words = 'a call is made: the cache of answers could not be read';
  const keys = await attemptStep(ctx, { words, work: () => keyAnswer(ctx, asked) });
  if (keys === null) return call();
  const lookup = { project_id: asked.projectId, keys: [...keys.values()], ttl_ms: cache.ttl_seconds * 1_000 };
  const found = await attemptStep(ctx, { words, work: async () => findCachedAnswer(ctx.db, lookup) });
  if (found !== null && found !== undefined)
    return take(ctx, asked, { found, duration_ms: performance.now() - startedAt });
  const answer = await call();
  await attemptStep(ctx, {
    words: 'an answer was not cached; the next equal call is made',
    work: () => keep(ctx, asked, { keys, answer }),
  }).catch(() => undefined); // the call has succeeded
  return answer;
}
