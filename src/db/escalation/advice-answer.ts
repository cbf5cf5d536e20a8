/** Advice that `/execute` has given, so that the `/advise` that follows answers the same and is not charged again. */
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';
import { purgeOld } from '../purge.ts';

export async function findAdviceAnswer(
  db: Db,
  projectId: string,
  requestSha256: Buffer,
): Promise<Json | undefined> {
  const row = await db('advice_answer')
    .where({ project_id: projectId, request_sha256: requestSha256 })
    .first('answer');
  return row?.answer;
}

/** The first answer to a request stays. */
export async function insertAdviceAnswer(
  db: Db,
  projectId: string,
  requestSha256: Buffer,
  answer: Json,
): Promise<void> {
  await db('advice_answer')
    .insert({ project_id: projectId, request_sha256: requestSha256, answer: JSON.stringify(answer) })
    .onConflict()
    .ignore();
}

/** Forgets answers after 24 hours. @returns how many */
export function purgeAdviceAnswers(db: Db): Promise<number> {
  return purgeOld(db, { table: 'advice_answer', hours: 24 });
}
