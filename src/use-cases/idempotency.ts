/**
 * One answer for an Idempotency-Key: the transaction that does the work stores it, so a repeated request gets the first
 * one's answer, even when the process died right after giving it.
 */
import type { Json } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import type { Db } from '../db/connect.ts';
import { findKey, insertAnswer } from '../db/idempotency.ts';

export interface Idempotency {
  readonly key: string;
  readonly bodySha256: Buffer;
}

/** A request under a key. */
export interface OnceRequest {
  readonly project_id: string;
  /** Method and path. */
  readonly request: string;
  readonly idempotency: Idempotency | null;
}

export function refuseReuse(key: string): AppError {
  return new AppError(
    'idempotency_key_reuse',
    `Idempotency-Key "${key}" was used with a different body; use a new key`,
  );
}

export function refuseInProgress(options?: { readonly retryAfterS: number }): AppError {
  const message = 'the first request with this key is still running; retry later';
  return new AppError('idempotency_in_progress', message, options);
}

/** @returns the stored answer; null: there is none @throws AppError `idempotency_key_reuse` */
export async function findKept<Answer>(
  db: Db,
  { project_id, request, idempotency }: OnceRequest,
): Promise<Answer | null> {
  if (idempotency === null) return null;
  const { key, bodySha256 } = idempotency;
  const stored = await findKey(db, { project_id, request, key });
  if (stored === undefined) return null;
  if (stored.body_sha256.equals(bodySha256)) return stored.answer as unknown as Answer;
  throw refuseReuse(key);
}

/** Stores the answer with the work. @returns false if the key is in use; nothing was written */
export async function keepAnswer(
  trx: Db,
  { project_id, request, idempotency }: OnceRequest,
  { status, answer }: { readonly status: number; readonly answer: object },
): Promise<boolean> {
  if (idempotency === null) return true;
  const { key, bodySha256: body_sha256 } = idempotency;
  return insertAnswer(
    trx,
    { project_id, request, key, body_sha256 },
    { status, answer: answer as unknown as Json },
  );
}

/** Undoes the transaction of the second of two equal requests. */
class KeyTaken extends Error {}

/** Called in the transaction that does the work. */
export type KeepAnswer = (trx: Db, status: number, answer: object) => Promise<void>;

interface Once<Answer> extends OnceRequest {
  readonly work: (keep: KeepAnswer) => Promise<Answer>;
}

/** @throws AppError `idempotency_key_reuse`, `idempotency_in_progress` */
export async function answerOnce<Answer>(
  db: Db,
  { work, ...asked }: Once<Answer>,
): Promise<{ readonly answer: Answer; readonly replayed: boolean }> {
  const known = await findKept<Answer>(db, asked);
  if (known !== null) return { answer: known, replayed: true };
  const keep: KeepAnswer = async (trx, status, answer) => {
    if (!(await keepAnswer(trx, asked, { status, answer }))) throw new KeyTaken();
  };
  try {
    return { answer: await work(keep), replayed: false };
  } catch (error) {
    if (!(error instanceof KeyTaken)) throw error;
    const winner = await findKept<Answer>(db, asked);
    if (winner !== null) return { answer: winner, replayed: true };
    throw refuseInProgress();
  }
}
