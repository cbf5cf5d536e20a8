/**
 * Calls whose instance answers 202 and sends its answer later. A step's call is left to its instance: its row waits,
 * and the step's next execution continues with the same claim, so that an answer is judged by the same code whether it
 * came in place or later (K3). Other calls have a caller that waits: their process waits with it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { SentRequest } from '@capstan/core/call/drive-call';
import type { CallOutcome } from '@capstan/core/call/outcome';
import type { CallLater } from '@capstan/core/call/types';
import { countWrongAnswers } from '@capstan/core/call/wrong-answer';
import { type CancelSignal, toAbortSignal } from '@capstan/core/cancellation';
import type { Decision } from '@capstan/core/contracts/decision';
import { AppError } from '@capstan/core/errors/app-error';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { Redactor } from '@capstan/core/secrets/redaction';
import { readLaterAnswer } from '../../clients/read-answer.ts';
import type { Ctx } from '../../context.ts';
import type { Claim, StepKey } from '../../db/attempt/attempt.ts';
import {
  type LaterAttempt,
  type LaterFacts,
  noteLaterCall,
  parkCall,
  readArrivedAnswer,
  readLaterAttempt,
  type StoredBody,
} from '../../db/attempt/callback.ts';
import type { CallRequest, Claimed } from '../../parts/calls/routed-call.ts';
import { decisionIdOf } from '../../parts/ids.ts';

/** As of an answer in place. */
export const laterAnswerBytes = 16 * 1_048_576;

/**
 * The address for a later answer. Only an instance whose spec declares `async` gets one. A call whose hold grows with
 * its connection gets none: nothing shows its use after it.
 */
export function addressOf(
  { callbackAddresses }: Pick<Ctx, 'callbackAddresses'>,
  { claim, instance, growing, slot, timeoutMs }: Claimed,
): Promise<string | undefined> | undefined {
  const isPossible = instance.answers_later != null && growing === null && slot === null;
  return isPossible ? callbackAddresses.create(claim.attempt_id, timeoutMs) : undefined;
}

function factsOf({ instance: { answers_later, settle, spec_digest } }: Claimed): LaterFacts {
  return { slot: answers_later ?? 'held', settle, spec_digest };
}

export interface AcceptedCall {
  readonly request: Pick<CallRequest, 'parks'>;
  readonly claimed: Claimed;
  readonly durationMs: number;
  readonly redactor: Redactor | undefined;
}

/** Parks an accepted call, or waits for its answer. */
export async function continueLater(
  ctx: Ctx,
  call: AcceptedCall,
  signal: CancelSignal,
): Promise<SentRequest | CallLater> {
  const { request, claimed, durationMs } = call;
  if (request.parks !== true) return waitInPlace(ctx, call, signal);
  const { claim, timeoutMs, instance } = claimed;
  const later = factsOf(claimed);
  const until = await parkCall(ctx.db, claim, { timeoutMs, later });
  if (later.slot === 'freed') ctx.fleet.noteRelease(instance.instance_id);
  return until === null ? { outcome: { kind: 'abandoned' }, durationMs } : { kind: 'later', until };
}

const pauses = { firstMs: 50, mostMs: 1_000 };

async function waitInPlace(
  ctx: Pick<Ctx, 'db' | 'secretCipher'>,
  { claimed, durationMs, redactor }: AcceptedCall,
  signal: CancelSignal,
): Promise<SentRequest> {
  const { claim, timeoutMs } = claimed;
  const deadline = performance.now() + timeoutMs - durationMs;
  await noteLaterCall(ctx.db, claim, { timeoutMs, later: factsOf(claimed) });
  for (let pauseMs = pauses.firstMs; ; pauseMs = Math.min(pauseMs * 1.5, pauses.mostMs)) {
    const leftMs = deadline - performance.now(); // before the look, so that the last one is after the deadline
    const arrived = await readArrivedAnswer(ctx.db, claim.attempt_id);
    if (arrived !== undefined) {
      const body = openBody(ctx, claim.attempt_id, arrived);
      return { outcome: await readBody(body, redactor), durationMs: arrived.duration_ms };
    }
    if (signal.aborted) {
      const kind = signal.reason === 'cancelled' ? 'cancelled' : 'abandoned';
      return { outcome: { kind }, durationMs: timeoutMs - leftMs };
    }
    if (leftMs <= 0) return { outcome: { kind: 'timeout', timeoutMs }, durationMs: timeoutMs };
    await pause(Math.min(pauseMs, leftMs), undefined, { signal: toAbortSignal(signal) }).catch(
      () => undefined,
    );
  }
}

type Sealing = Pick<Ctx, 'secretCipher'>;

/** The body as it is stored until its call takes it: it may repeat a secret, which nothing stores in plain text. */
export function sealBody({ secretCipher }: Sealing, attemptId: string, body: Buffer): StoredBody {
  if (secretCipher === null) return { body, key_id: null };
  const { sealed, key_id } = secretCipher.sealAnswer(attemptId, body);
  return { body: sealed, key_id };
}

/** @throws AppError `unavailable` when this process lacks the key */
function openBody({ secretCipher }: Sealing, attemptId: string, { body, key_id }: StoredBody): Buffer {
  if (key_id === null) return body;
  if (secretCipher === null)
    throw new AppError('unavailable', 'the answer is encrypted, and this process has no PAYLOAD_KEYS');
  try {
    return secretCipher.openAnswer(attemptId, { sealed: body, key_id });
  } catch (cause) {
    throw new AppError('unavailable', (cause as Error).message, { cause });
  }
}

/** @throws AppError `unavailable` when this process lacks the key of its answer */
export async function readAttempt(
  ctx: Pick<Ctx, 'db' | 'secretCipher'>,
  attemptId: string,
): Promise<LaterAttempt> {
  const attempt = await readLaterAttempt(ctx.db, attemptId);
  const { body, key_id } = attempt;
  return body === null ? attempt : { ...attempt, body: openBody(ctx, attemptId, { body, key_id }) };
}

function readBody(body: Buffer, redactor: Redactor | undefined): Promise<CallOutcome> {
  return readLaterAnswer(body, { limitBytes: laterAnswerBytes, redactor });
}

/** Reads what became of a call that a process continues with: its answer, or nothing within its time. */
export async function readAdopted(
  { body, duration_ms }: Pick<LaterAttempt, 'body' | 'duration_ms'>,
  { timeoutMs }: Pick<Claimed, 'timeoutMs'>,
  redactor: Redactor | undefined,
): Promise<SentRequest> {
  if (body === null) return { outcome: { kind: 'timeout', timeoutMs }, durationMs: timeoutMs };
  return {
    outcome: await readBody(body, redactor),
    durationMs: Math.min(duration_ms ?? timeoutMs, timeoutMs),
  };
}

/** The instance as the call was made; of one that is gone, what its price and its answer need. */
function instanceOf({ fleet }: Pick<Ctx, 'fleet'>, attempt: LaterAttempt): InstanceSnapshot {
  const { instance_id, endpoint, capability, cost_type, rate_usd, later } = attempt;
  const known = fleet.find(instance_id);
  return {
    ...(known ?? { ...absent, instance_id, endpoint, name: capability }),
    cost_type,
    rate_usd: Number(rate_usd),
    settle: later?.settle ?? known?.settle ?? 'computed',
    spec_digest: later?.spec_digest ?? known?.spec_digest ?? null,
  };
}

const absent = {
  version: '',
  tags: [],
  max_concurrency: 1,
  state: 'deregistered',
  held: 0,
  reported_extra: 0,
  duration_ms: null,
  deviation_ms: null,
  mean_cost_usd: null,
  success_count: 0,
  failure_count: 0,
  breaker_until_ms: null,
  is_local: false,
} as const;

/** The claim of an attempt, made again from its row. */
export function claimedOf(
  ctx: Pick<Ctx, 'fleet' | 'config'>,
  attempt: LaterAttempt,
  step: StepKey | null,
): Claimed {
  const instance = instanceOf(ctx, attempt);
  const { number, counted, errors, timeout_ms, decision } = attempt;
  const claim = toClaim(ctx, attempt, { instance, step });
  return {
    kind: 'claimed',
    claim,
    instance,
    number,
    counted,
    wrong: countWrongAnswers(errors),
    timeoutMs: timeout_ms ?? ctx.config.LEASE_MS,
    reserved: claim.reserved_nano,
    risk: claim.risk_nano,
    decision: decision ?? claim.decision,
    isTrial: false,
    growing: null,
    metered: null,
    units: () => null,
    slot: null,
    answered: attempt,
  };
}

/** Its reasons were deleted before its answer came. */
function unexplained({ attempt_id, endpoint, reserved_nano }: LaterAttempt): Decision {
  return {
    decision_id: decisionIdOf(attempt_id),
    chosen: endpoint,
    reason: 'the reasons are not stored any more',
    candidates: [],
    reserved_usd: fromNanoUsd(BigInt(reserved_nano)),
    settled_usd: null,
  };
}

interface ClaimPlace {
  readonly instance: InstanceSnapshot;
  readonly step: StepKey | null;
}

function toClaim(
  { config }: Pick<Ctx, 'config'>,
  attempt: LaterAttempt,
  { instance, step }: ClaimPlace,
): Claim {
  const { attempt_id, token, key, project_id, run_id, scopes, capability, instance_id } = attempt;
  return {
    attempt_id,
    token,
    key,
    is_first: false,
    begins_step: false,
    known_failures: [],
    project_id,
    step,
    run_id,
    scopes: scopes ?? undefined,
    capability,
    instance_id,
    must_be_idle: false,
    has_host: false,
    cost_type: instance.cost_type,
    rate_usd: instance.rate_usd,
    lease_ms: config.LEASE_MS,
    reserved_nano: BigInt(attempt.reserved_nano),
    risk_nano: BigInt(attempt.risk_nano),
    outlook: null,
    decision: attempt.decision ?? unexplained(attempt),
    inputs: {},
  };
}
