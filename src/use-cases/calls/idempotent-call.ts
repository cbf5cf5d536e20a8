/**
 * A call under an Idempotency-Key is dispatched once, however often it is requested, and its answer is stored for 24 h.
 * The key is reserved before the dispatch. Answers that a retry would repeat, success and 422, are stored by the
 * statement that settles the call: a process that takes the key over finds either the answer or an attempt with an
 * unknown outcome. Every other end releases the key. A client that disconnects does not stop the call: it requests the
 * answer again with the same key.
 */

import { type CancelSignal, CancelSource } from '@capstan/core/cancellation';
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Json } from '@capstan/core/contracts/primitives';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import { AppError } from '@capstan/core/errors/app-error';
import type { ServerCtx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import {
  answerKey,
  findKey,
  holdKey,
  type IdempotentRequest,
  type KeptAnswer,
  type KeyHold,
  type KeyRow,
  releaseKey,
  takeOverKey,
} from '../../db/idempotency.ts';
import { newToken } from '../../parts/ids.ts';
import { refuseInProgress, refuseReuse } from '../idempotency.ts';

export interface ExecOutcome {
  readonly answer: ExecAnswer | AppError;
  /** The answer was stored before. */
  readonly isReplayed: boolean;
}

interface HeldKey {
  /** Aborts when another process has taken the key; the work must stop then. */
  readonly lost: CancelSignal;
  /** Returns the part of an answer that is stored; null: none. */
  readonly keeps: (answer: ExecAnswer | AppError) => KeptAnswer | null;
}

interface KeyedRequest extends IdempotentRequest {
  /** The key of the attempts that are made for it. */
  readonly attemptKey: string;
}

interface StoredProblem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Json;
  readonly errors?: readonly ProblemItem[];
}

type KeyedCallCtx = Pick<ServerCtx, 'db' | 'keyRenewer' | 'logger' | 'answerKeeper'>;

/**
 * @param work stores its answer itself, together with its cost, if it has one
 * @throws AppError `idempotency_key_reuse`, `idempotency_in_progress`, and what `work` throws
 */
export async function callOnce(
  ctx: KeyedCallCtx,
  { body_sha256, attemptKey, ...request }: KeyedRequest,
  work: (held: HeldKey) => Promise<ExecAnswer>,
): Promise<ExecOutcome> {
  const { db, keyRenewer } = ctx;
  const hold: KeyHold = { holder: newToken(), ...request };
  const endKeep = keyRenewer.keepInFreeze(hold);
  try {
    const stored = await takeKey(db, hold, { bodySha256: body_sha256, attemptKey });
    if (stored !== null) return { answer: readStored(stored), isReplayed: true };
    return await workUnder(ctx, hold, work);
  } finally {
    endKeep();
  }
}

async function workUnder(
  { db, keyRenewer, logger, answerKeeper }: KeyedCallCtx,
  hold: KeyHold,
  work: (held: HeldKey) => Promise<ExecAnswer>,
): Promise<ExecOutcome> {
  const lost = new CancelSource();
  const release = keyRenewer.hold(hold, () => lost.abort('abandoned'));
  const keeps = (answer: ExecAnswer | AppError): KeptAnswer | null => {
    const kept = toKept(hold, answer);
    if (kept !== null) answerKeeper.count(hold.project_id, kept.answer);
    return kept;
  };
  try {
    return { answer: await work({ lost, keeps }), isReplayed: false };
  } catch (thrown) {
    const kept = thrown instanceof AppError ? keeps(thrown) : null;
    if (kept === null)
      await releaseKey(db, hold).catch(() => undefined); // it expires after 10 s
    else await keepRefusal(db, logger, kept);
    throw thrown;
  } finally {
    release();
  }
}

/** Stores the answer of a call that was refused before the dispatch; other answers are stored already. */
function keepRefusal(db: Db, logger: ServerCtx['logger'], kept: KeptAnswer): Promise<void> {
  return answerKey(db, kept).catch((error: unknown) =>
    logger.error({ err: error }, 'an answer was not stored; its Idempotency-Key becomes free'),
  );
}

/** @returns the stored answer, or null when the key is ours now */
async function takeKey(
  db: Db,
  hold: KeyHold,
  { bodySha256, attemptKey }: { readonly bodySha256: Buffer; readonly attemptKey: string },
): Promise<KeyRow | null> {
  if (await holdKey(db, hold, bodySha256)) return null;
  const row = await findKey(db, hold);
  if (row !== undefined && !row.body_sha256.equals(bodySha256)) throw refuseReuse(hold.key);
  if (row !== undefined && row.status !== 0) return row;
  if (row !== undefined && (await takeOverKey(db, hold, attemptKey))) return null;
  throw refuseInProgress({ retryAfterS: 1 });
}

function toKept(hold: KeyHold, answer: ExecAnswer | AppError): KeptAnswer | null {
  if (!(answer instanceof AppError)) {
    return { place: { status: 200, ...hold }, answer: answer as unknown as Json };
  }
  if (answer.status !== 422) return null;
  return { place: { status: 422, ...hold }, answer: toStored(answer) as unknown as Json };
}

function toStored({ code, message, details, errors }: AppError): StoredProblem {
  return {
    code,
    message,
    ...(details === undefined ? {} : { details }),
    ...(errors === undefined ? {} : { errors }),
  };
}

function readStored({ status, answer }: KeyRow): ExecAnswer | AppError {
  if (status === 200) return answer as unknown as ExecAnswer;
  const { code, message, ...options } = answer as unknown as StoredProblem;
  return new AppError(code, message, options);
}
