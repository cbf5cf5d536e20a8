import type { ProjectRequest } from '../../contracts/access.ts';
import { toNanoUsd } from '../../core/money/nano-usd.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { addProjectUpwards, lockKeys } from '../../db/access/key-lineage.ts';
import { holdsEvery } from '../../db/access/person.ts';
import { insertProject, isKnownTimezone, type ProjectRow } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import type { Caller } from './caller.ts';
import { refuseField } from './refuse-field.ts';

/**
 * @returns the project and the keys that hold it
 * @throws AppError `request_invalid` for an unknown time zone, `forbidden` for a person who would not hold it
 */
export async function createProject(
  db: Db,
  { key_id, byProject }: Caller,
  { name, timezone, daily_limit_usd }: ProjectRequest,
): Promise<{ readonly row: ProjectRow; readonly holders: readonly string[] }> {
  if (!(await isKnownTimezone(db, timezone))) {
    const message = `${JSON.stringify(timezone)} is no IANA time zone; one is Europe/Berlin`;
    throw refuseField('/timezone', message);
  }
  if (byProject !== undefined && !(await holdsEvery(db, key_id)))
    throw new AppError(
      'forbidden',
      `${key_id} holds the projects of their groups; a key makes projects, or who is in a group that holds all (*)`,
    );
  const project_id = newId('project');
  const daily_limit_nano = toNanoUsd(daily_limit_usd);
  return db.transaction(async (trx) => {
    await lockKeys(trx);
    const row = await insertProject(trx, { project_id, name, timezone, daily_limit_nano });
    const holders = await addProjectUpwards(trx, key_id, project_id);
    const entry = { actor: key_id, action: 'project.created', subject: project_id };
    await insertAudit(trx, { ...entry, project_id, data: { name } });
    return { row, holders };
  });
}
