/**
 * Answers kept under an Idempotency-Key. The row is written by the transaction that does the work, so an answer
 * that was given survives a crash, and of two equal requests at once the second waits for the first.
 */
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';
import { purgeOld } from '../purge.ts';

export interface IdempotentRequest {
  readonly project_id: string;
  /** Method and path. */
  readonly request: string;
  readonly key: string;
  readonly body_sha256: Buffer;
}

export interface StoredAnswer {
  readonly body_sha256: Buffer;
  readonly answer: Json;
}

/** @returns false when the key is taken; nothing was written */
export async function insertAnswer(
  db: Db,
  { project_id, request, key, body_sha256 }: IdempotentRequest,
  status: number,
  answer: Json,
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into idempotency (project_id, request, key, body_sha256, status, answer)
     values (?, ?, ?, ?, ?, ?) on conflict do nothing`,
    [project_id, request, key, body_sha256, status, JSON.stringify(answer)],
  );
  return rowCount === 1;
}

export async function findAnswer(
  db: Db,
  { project_id, request, key }: Omit<IdempotentRequest, 'body_sha256'>,
): Promise<StoredAnswer | undefined> {
  return db('idempotency').where({ project_id, request, key }).first('body_sha256', 'answer');
}

/** Forgets answers after 24 hours. @returns how many */
export function purgeAnswers(db: Db): Promise<number> {
  return purgeOld(db, { table: 'idempotency', hours: 24 });
}
