/**
 * Advice for an external caller that keeps its own history. The level follows from how often the error is in that
 * history, so a caller that runs the specification's loop climbs and finally gets a review. The same request gets the
 * same advice and is paid for once.
 */
import { createHash } from 'node:crypto';
import type { ProjectKey } from '@capstan/core/call/caller';
import type { CancelSignal } from '@capstan/core/cancellation';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { AdviseRequest } from '@capstan/core/contracts/escalation';
import type { Json } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { canonicalJson } from '@capstan/core/json/values';
import type { AdviceEnd } from '@capstan/core/ladder/drive';
import { effectiveLevel, exhaustedText, humanLevel, topLevel } from '@capstan/core/ladder/levels';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { Ctx, ServerCtx } from '../../../context.ts';
import { readCallCost } from '../../../db/escalation/escalation-transition.ts';
import type { FoundAdvice, LevelAdvice } from '../../../parts/cache/advice-cache.ts';
import { fingerprintOf } from '../ladder/stored-ladder.ts';
import { askAdvisor, type ModelEnd, requireLevel } from '../levels/model-question.ts';
import { given, shortenError, showAdvice, showHistory } from '../prompts.ts';

/** The parts of the server that requests for advice need. */
export type AdviseCtx = Ctx & Pick<ServerCtx, 'adviceCache'>;

/** The key that pays. The Idempotency-Keys of its calls begin with `owner`. */
export interface Asker {
  readonly key: ProjectKey;
  readonly owner: string;
  /** The limit for all calls of the owner; null = only the budgets. */
  readonly maxUsd: number | null;
  readonly signal: CancelSignal;
}

function humanAdvice(why: string): LevelAdvice {
  return {
    from_level: humanLevel,
    instructions: 'Stop and ask a person.',
    reasoning: `${exhaustedText}: ${why}`,
    suggested_executor_level: humanLevel,
  };
}

/** Digests the parts that make two requests equal: without times and labels, which a caller may make up. */
function digestOf(level: number, request: AdviseRequest, isWhole: boolean): Buffer {
  const { job_type, error, escalation_history, repo_context, prompt, context, escalation_advice } = request;
  const history = escalation_history.map((attempt) => [attempt.level, attempt.error]);
  const advice = escalation_advice.map(({ from_level, instructions }) => [from_level, instructions]);
  const more: Json[] = [prompt ?? null, context ?? null, advice];
  const isMore = prompt !== undefined || context !== undefined || advice.length > 0;
  const text = canonicalJson([
    level,
    job_type,
    error,
    history,
    repo_context,
    isWhole && isMore ? more : null,
  ]);
  return createHash('sha256').update(text).digest();
}

/** Reads the money for the next call. */
export async function readLeft(
  { db }: Pick<Ctx, 'db'>,
  { key: { project_id }, owner, maxUsd }: Asker,
): Promise<number | null> {
  if (maxUsd === null) return null;
  const { cost_nano, reserved_nano } = await readCallCost(db, project_id, owner);
  const left = toNanoUsd(maxUsd) - BigInt(cost_nano) - BigInt(reserved_nano);
  return fromNanoUsd(left > 0n ? left : 0n);
}

type FailedEnd = Extract<ModelEnd, { kind: 'failed' | 'interrupted' }>;

/** A failure that is no evidence about the job. */
export function toCallError(end: FailedEnd): AppError {
  const { error } = end;
  if (error === undefined) return new AppError('run_cancelled', 'the call was cancelled before its answer');
  const { code, message, details } = error;
  const isForNow = end.kind === 'interrupted' || end.class === 'transient';
  const delayMs = end.kind === 'interrupted' ? (end.delayMs ?? 0) : 0;
  return new AppError(code as ErrorCode, message, {
    ...(details === undefined ? {} : { details }),
    ...(isForNow ? { retryAfterS: Math.max(1, Math.ceil(delayMs / 1_000)) } : {}),
  });
}

/** @throws AppError of the routing table, when no answer is available now */
export async function adviseOnce(ctx: AdviseCtx, asker: Asker, request: AdviseRequest): Promise<LevelAdvice> {
  const level = effectiveLevel({
    from_level: request.from_level,
    fingerprint: fingerprintOf(request.error),
    history: request.escalation_history.map(({ error }) => fingerprintOf(error)),
  });
  if (level === humanLevel) return humanAdvice('this error was seen too often');
  const { key, signal } = asker;
  requireLevel(ctx, key, level);
  const digest = digestOf(level, request, true);
  const question = { key, digest, leftUsd: await readLeft(ctx, asker), signal };
  const advice = await ctx.adviceCache.answer(question, (signal) =>
    climb(ctx, { asker: { ...asker, signal }, request }, level),
  );
  const plain = digestOf(level, request, false);
  if (advice.from_level !== humanLevel && !plain.equals(digest))
    await ctx.adviceCache.keep(key.project_id, plain, advice);
  return advice;
}

interface AskedAdvice {
  readonly asker: Asker;
  readonly request: AdviseRequest;
}

/** The lowest level from `from` on that answers. */
async function climb(ctx: Ctx, asked: AskedAdvice, from: number): Promise<FoundAdvice> {
  for (let level = from; level <= topLevel; level++) {
    const end = await askLevel(ctx, asked, level);
    if (end.kind === 'advised') {
      const { kind: _, ...answer } = end;
      return { advice: { ...answer, from_level: level }, isKept: true };
    }
    if (end.kind === 'unavailable') continue;
    if (end.kind === 'failed' && end.class === 'config') {
      return { advice: humanAdvice(`level ${level} has to be put right by its operator`), isKept: false };
    }
    if (end.kind === 'interrupted' || (end.class !== 'real' && end.class !== 'malformed')) {
      throw toCallError(end);
    }
  }
  return { advice: humanAdvice('no model is there to advise'), isKept: false };
}

/** A model whose answer is invalid is asked once more. */
async function askLevel(ctx: Ctx, { asker, request }: AskedAdvice, level: number): Promise<AdviceEnd> {
  const ask = async (invalid: string | null): Promise<AdviceEnd> => {
    const leftUsd = await readLeft(ctx, asker);
    const { key: caller, owner, signal } = asker;
    const key = `${owner}.advise.${level}${invalid === null ? '' : '.again'}`;
    const call = { projectId: caller.project_id, caller, key, leftUsd, round: 1, signal };
    return askAdvisor(ctx, call, { level, facts: factsOf(request, invalid) });
  };
  const end = await ask(null);
  return end.kind === 'failed' && end.class === 'malformed' ? ask(end.error.message) : end;
}

function factsOf(request: AdviseRequest, invalid: string | null) {
  return {
    job_type: request.job_type,
    error: shortenError(request.error),
    ...given('prompt', request.prompt),
    ...given('context', request.context),
    ...given('repo_context', request.repo_context),
    history: showHistory(request.escalation_history),
    advice: showAdvice(request.escalation_advice),
    ...given('invalid_answer', invalid === null ? null : shortenError(invalid)),
  };
}
