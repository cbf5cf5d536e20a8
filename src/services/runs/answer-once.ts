/**
 * One answer for an Idempotency-Key: it is stored by the transaction that does the work, so a repeated request meets
 * the first one's answer, also when the process died right after giving it.
 */
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../../db/connect.ts';
import { findAnswer, insertAnswer } from '../../db/idempotency/idempotency.ts';
import { AppError } from '../../errors/app-error.ts';

export interface Idempotency {
  readonly key: string;
  readonly bodySha256: Buffer;
}

/** Undoes the transaction of the second of two equal requests. */
class KeyTaken extends Error {}

/** Called in the transaction that does the work. */
export type KeepAnswer = (trx: Db, status: number, answer: object) => Promise<void>;

export interface Once<Answer> {
  readonly project_id: string;
  /** Method and path. */
  readonly request: string;
  readonly idempotency: Idempotency | null;
  readonly work: (keep: KeepAnswer) => Promise<Answer>;
}

/** @throws AppError `idempotency_key_reuse`, `idempotency_in_progress` */
export async function answerOnce<Answer>(
  db: Db,
  { project_id, request, idempotency, work }: Once<Answer>,
): Promise<{ readonly answer: Answer; readonly replayed: boolean }> {
  if (idempotency === null) return { answer: await work(async () => undefined), replayed: false };
  const { key, bodySha256: body_sha256 } = idempotency;

  const replay = async (): Promise<Answer | null> => {
    const stored = await findAnswer(db, { project_id, request, key });
    if (stored === undefined) return null;
    if (stored.body_sha256.equals(body_sha256)) return stored.answer as unknown as Answer;
    throw new AppError('idempotency_key_reuse', `Idempotency-Key "${key}" was used with another body`);
  };

  const known = await replay();
  if (known !== null) return { answer: known, replayed: true };
  try {
    const keep: KeepAnswer = async (trx, status, answer) => {
      const stored = { project_id, request, key, body_sha256 };
      if (!(await insertAnswer(trx, stored, status, answer as unknown as Json))) throw new KeyTaken();
    };
    return { answer: await work(keep), replayed: false };
  } catch (error) {
    if (!(error instanceof KeyTaken)) throw error;
    const winner = await replay();
    if (winner !== null) return { answer: winner, replayed: true };
    throw new AppError('idempotency_in_progress', 'the first request is being handled');
  }
}
