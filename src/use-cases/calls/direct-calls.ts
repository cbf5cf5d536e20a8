/**
 * Direct calls as the API offers them: one routed call without a pipeline, or the error with which it fails.
 */

import type { ProjectKey } from '@capstan/core/call/caller';
import type { SchemaError } from '@capstan/core/call/claim-search';
import { describeMismatch } from '@capstan/core/call/no-claim';
import { longestWaitMs, type RetrySettings } from '@capstan/core/call/retry';
import type { CallEnd, CallForms } from '@capstan/core/call/types';
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import type { CallOnBudget, ExecAnswer, ExecRequest } from '@capstan/core/contracts/decision';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { BudgetRefusal } from '@capstan/core/contracts/money';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import { AppError, type AppErrorOptions } from '@capstan/core/errors/app-error';
import { isPlainObject, summarizeFindings } from '@capstan/core/json/values';
import type { SpokenProtocol } from '@capstan/core/routing/types';
import type { Ctx, ServerCtx } from '../../context.ts';
import { answerKey, type KeptAnswer } from '../../db/idempotency.ts';
import type { OnDelta } from '../../parts/calls/routed-call.ts';
import { requireCapability } from '../../parts/fleet/fleet-poller.ts';
import { newId } from '../../parts/ids.ts';
import { requireCallable } from '../access/caller.ts';
import type { Idempotency } from '../idempotency.ts';
import { callCapability } from '../routing/call.ts';
import { toConstraints } from '../routing/decisions.ts';
import { type AnswerCacheCtx, throughAnswerCache } from './cached-answers.ts';
import { callOnce, type ExecOutcome } from './idempotent-call.ts';

// The error of a routed call that does not succeed; each one carries the decision.

type Members = Readonly<Record<string, Json>>;

/** Lists the faults of the input, once each, with pointers into the body of the request. */
function toItems(code: string, refusals: readonly SchemaError[]): ProblemItem[] {
  const items = new Map(
    refusals.map(({ pointer, message }) => [
      `${pointer} ${message}`,
      { pointer: `/input${pointer}`, code: code === 'input_invalid' ? 'schema_mismatch' : code, message },
    ]),
  );
  return [...items.values()];
}

function limitOfCall({ budget_ceiling_usd = 0 }: ExecRequest, { minimum_usd }: Members): Members {
  const refusal: BudgetRefusal = {
    scope: 'call',
    limit_usd: budget_ceiling_usd,
    spent_usd: 0,
    reserved_usd: 0,
    resets_at: null,
    minimum_usd: Number(minimum_usd),
  };
  return refusal as unknown as Members;
}

type UnansweredCall = Extract<CallEnd, { readonly kind: 'failed' | 'unknown' | 'retry' }>;

function explain(
  { error: { code, message, details }, decision }: UnansweredCall,
  request: ExecRequest,
  retryAfterS?: number,
): AppError {
  const { errors, ...members } = (isPlainObject(details) ? details : {}) as Members;
  const refusals = errors as unknown as readonly SchemaError[] | undefined;
  const limit = code === 'ceiling_too_low' ? limitOfCall(request, members) : {};
  const shown = decision as unknown as Json;
  const options: AppErrorOptions = {
    details: { ...members, ...limit, ...(shown === null ? {} : { decision: shown }) },
    ...(refusals === undefined ? {} : { errors: toItems(code, refusals) }),
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  };
  const isMismatch = code === 'input_invalid' && refusals !== undefined;
  const text = isMismatch ? describeMismatch(summarizeFindings(refusals)) : message;
  return new AppError(code as ErrorCode, text, options);
}

/** @param request as it was received */
function toExecError(end: Exclude<CallEnd, { kind: 'succeeded' }>, request: ExecRequest): AppError {
  switch (end.kind) {
    case 'failed':
    case 'unknown':
      return explain(end, request);
    case 'retry':
      return explain(end, request, end.delayMs / 1_000);
    case 'cancelled':
      return new AppError('run_cancelled', 'the caller disconnected, so the call was cancelled');
    case 'closed':
      return takenOver();
  }
}

/** The process had no connection to the database for longer than its lease. */
function takenOver(): AppError {
  return new AppError('contact_lost', 'the call outlived its lease, and what it answered was not accepted', {
    retryAfterS: 1,
  });
}

interface ExecCall {
  readonly projectId: string;
  readonly caller: ProjectKey;
  readonly capability: string;
  readonly request: ExecRequest;
  /** The key of its attempts; null creates one. */
  readonly key: string | null;
  /** Returns the answer to store under the caller's Idempotency-Key, by the statement that settles the last attempt. */
  readonly keeps?: ((answer: ExecAnswer | AppError) => KeptAnswer | null) | undefined;
  readonly signal: CancelSignal;
  readonly onDelta?: OnDelta | undefined;
  readonly declaredFields?: readonly string[] | undefined;
  readonly forms?: CallForms | undefined;
  readonly protocol?: SpokenProtocol | undefined;
  readonly onNotKept?: ((reason: string) => void) | undefined;
}

/** Turns the end of the call into its answer, or into the error to throw. */
function answerOf(end: CallEnd, request: ExecRequest): ExecAnswer | AppError {
  if (end.kind !== 'succeeded') return toExecError(end, request);
  if (end.attempt === null) return takenOver();
  return { ok: true, output: end.output as ExecAnswer['output'], routing: end.attempt.decision };
}

/** The caller decides about retries, so earlier attempts of the same key never use up a count. */
const retry: RetrySettings = {
  max: Number.MAX_SAFE_INTEGER,
  initialMs: 1_000,
  factor: 2,
  maxDelayMs: 60_000,
};

/** The end of direct calls without room, by choice of the key, else of the project; null: of neither. */
export async function chosenOnBudget(
  ctx: Pick<CallCtx, 'modelRules'>,
  caller: Pick<ProjectKey, 'project_id'> & Partial<Pick<ProjectKey, 'onBudget'>>,
): Promise<CallOnBudget | null> {
  const chosen = caller.onBudget ?? (await ctx.modelRules.of(caller.project_id)).onBudget;
  return chosen === 'pause' ? null : chosen; // a direct call has nothing that could wait
}

/**
 * Makes one routed call without a pipeline, by the same path as a step's: up to three instances within one ceiling and
 * one deadline. Where a step would be retried later, a call fails, with the time after which to retry.
 *
 * @throws AppError of the routing table
 */
async function execCapability(ctx: CallCtx, call: ExecCall): Promise<ExecAnswer> {
  const { capability, request, key, keeps, signal, onDelta } = call;
  const onBudget = request.on_budget ?? (await chosenOnBudget(ctx, call.caller)) ?? undefined;
  let hasPassedOn = false;
  const passOn: OnDelta = (delta, attemptId) => {
    hasPassedOn = true;
    onDelta?.(delta, attemptId);
  };
  const end = await callCapability(ctx, {
    projectId: call.projectId,
    caller: call.caller,
    step: null,
    isAtMostOnce: false,
    retry,
    round: 1,
    signal,
    key: key ?? newId('call'),
    isKeyNew: key === null,
    input: request.input,
    declaredFields: call.declaredFields ?? [],
    forms: call.forms,
    route: toConstraints(capability, request, { onBudget, protocol: call.protocol }),
    maxWaitMs: Math.min(longestWaitMs, request.timeout_ms),
    hasPassedOn: () => hasPassedOn,
    onDelta: onDelta && passOn,
    keeps: keeps && ((end) => keeps(answerOf(end, request))),
  });
  const answer = answerOf(end, request);
  if (answer instanceof AppError) throw answer;
  return answer;
}

interface CallOrder {
  readonly caller: ProjectKey;
  readonly capability: string;
  readonly request: ExecRequest;
  readonly idempotency: Idempotency | null;
  /** Aborts when the caller disconnects; without an Idempotency-Key the result is no longer needed then. */
  readonly signal: CancelSignal;
  /** Receives why the answer is not cached. */
  readonly onNotKept?: ((reason: string) => void) | undefined;
  /** Receives parts of the result as they are made (C8). Only without an Idempotency-Key. */
  readonly onDelta?: OnDelta | undefined;
  /** Fields of the input that the schema of the instance must declare. */
  readonly declaredFields?: readonly string[] | undefined;
  /** Other forms of the input. Default: there are none. */
  readonly forms?: CallForms | undefined;
  /** The protocol of the client. Default: the call is in the neutral form. */
  readonly protocol?: SpokenProtocol | undefined;
}

export type CallCtx = Ctx &
  AnswerCacheCtx &
  Pick<ServerCtx, 'openCalls' | 'keyRenewer' | 'answerKeeper' | 'modelRules'>;

/** Aborts when one of the two does, with its reason. */
function stopWith(one: CancelSignal, other: CancelSignal): CancelSignal {
  const stop = new CancelSource();
  for (const signal of [one, other]) onCancel(signal, () => stop.abort(signal.reason));
  return stop;
}

function execThroughCache(ctx: CallCtx, call: ExecCall): Promise<ExecAnswer> {
  return call.request.cache === undefined ? execCapability(ctx, call) : execCached(ctx, call);
}

/** A cached answer is stored under the Idempotency-Key here; the end of a call that is made stores its own. */
async function execCached(ctx: CallCtx, call: ExecCall): Promise<ExecAnswer> {
  const answer = await throughAnswerCache(ctx, call, () => execCapability(ctx, call));
  const kept = answer.routing.cached === undefined ? null : (call.keeps?.(answer) ?? null);
  if (kept !== null) await answerKey(ctx.db, kept);
  return answer;
}

/**
 * An answer stored under an Idempotency-Key is returned as an outcome.
 * @throws AppError of the routing table, `forbidden` for a name that the key may not call
 */
export async function makeDirectCall(ctx: CallCtx, order: CallOrder): Promise<ExecOutcome> {
  const { caller, capability } = order;
  requireCallable(caller, capability); // before the caches, which the router never sees
  await requireCapability(ctx, { projectId: caller.project_id, name: capability }, '/path/name');
  if (order.idempotency !== null) return callByKey(ctx, order, order.idempotency);
  const answer = await ctx.openCalls.run(order.signal, (stop) =>
    execThroughCache(ctx, toExecCall(order, { key: null, signal: stop, onDelta: order.onDelta })),
  );
  return { answer, isReplayed: false };
}

function callByKey(ctx: CallCtx, order: CallOrder, { key, bodySha256 }: Idempotency): Promise<ExecOutcome> {
  const { caller, capability } = order;
  const stored = {
    project_id: caller.project_id,
    key,
    body_sha256: bodySha256,
    request: `POST /v1/capabilities/${capability}/exec`,
    // Capability names hold no colon, so no two of them share a key.
    attemptKey: `${caller.project_id}:${capability}:${key}`,
  };
  return ctx.openCalls.run(null, (stop) =>
    callOnce(ctx, stored, ({ lost, keeps }) => {
      const call = { key: stored.attemptKey, keeps, signal: stopWith(stop, lost) };
      return execThroughCache(ctx, toExecCall(order, call));
    }),
  );
}

/** Field by field: a spread takes longer than the rest of a free call's way to the router. */
function toExecCall(
  order: CallOrder,
  { key, keeps, signal, onDelta }: Pick<ExecCall, 'key' | 'keeps' | 'signal' | 'onDelta'>,
): ExecCall {
  return {
    projectId: order.caller.project_id,
    caller: order.caller,
    capability: order.capability,
    request: order.request,
    declaredFields: order.declaredFields,
    forms: order.forms,
    protocol: order.protocol,
    onNotKept: order.onNotKept,
    key,
    keeps,
    signal,
    onDelta,
  };
}
