/**
 * Begins the erasure of a project, continues it, and shows its progress. It concerns things that all projects share
 * (the registry, keys of several projects, ledger and audit log), so it requires the scope `operator`, whatever
 * projects the key holds. From the first moment the project accepts no new work.
 *
 * Maintenance does the rest in batches, each committed, from the point where an earlier process stopped: the remaining
 * work is read from the rows. The next maintenance tick continues an incomplete pass.
 * Invariants:
 *
 * E1 Rows, files and histories of other projects do not change.
 * E2 Sums of the ledger, the budget of all projects, and whether budgets match their attempts, do not change.
 * E3 Data in Temporal and the media store is deleted before the rows that lead to it.
 * E4 At the end, no row names the project, its texts, or keys that held it alone; amounts keep the name of their
 *    capability.
 */

import { Erasure } from '@capstan/core/contracts/access';
import { erasureCounted } from '@capstan/core/contracts/limits';
import { toWire } from '@capstan/core/contracts/to-wire';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { findOldestProject, projectExists } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import {
  countLeft,
  type ErasureRow,
  findErasure,
  insertErasure,
  markErasing,
  untieKeys,
} from '../../db/deletion/erasure.ts';
import { takeLock } from '../../db/locks.ts';
import { newId } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';

const notAsked = {
  pseudonym: null,
  state: 'none',
  requested_at: null,
  finished_at: null,
  deleted: {},
} as const;

async function toErasure(db: Db, projectId: string, row: ErasureRow): Promise<Erasure> {
  const isOpen = row.finished_at === null;
  const left = isOpen ? await countLeft(db, projectId, erasureCounted) : {};
  return toWire(Erasure, { ...row, state: isOpen ? 'erasing' : 'erased', left });
}

async function refuseNeeded(trx: Db, { key_id, projects }: Caller, projectId: string): Promise<void> {
  if ((await findOldestProject(trx, 'default'))?.project_id === projectId)
    throw new AppError(
      'state_conflict',
      `${projectId} is the default project, which the next start would create again`,
    );
  if (projects.length === 1 && projects[0] === projectId)
    throw new AppError(
      'state_conflict',
      `${key_id} has only the project ${projectId} and would be erased with it; use a key with another project`,
    );
}

/** Repeated, it returns the progress. @throws AppError `not_found`, `state_conflict` */
export async function beginErasure(
  { db }: Pick<Ctx, 'db'>,
  caller: Caller,
  projectId: string,
): Promise<Erasure> {
  const begun = await db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const known = await findErasure(trx, projectId);
    if (known !== undefined) return known;
    await refuseNeeded(trx, caller, projectId);
    if (!(await markErasing(trx, projectId))) throw new AppError('not_found', `no project ${projectId}`);
    const pseudonym = newId('erasure');
    const row = await insertErasure(trx, pseudonym, projectId);
    await untieKeys(trx, { projectId, pseudonym });
    const entry = { actor: caller.key_id, action: 'project.erased', subject: pseudonym };
    await insertAudit(trx, { ...entry, project_id: null, data: {} });
    return row;
  });
  return toErasure(db, projectId, begun);
}

/** Before an erasure, it shows what would be deleted. @throws AppError `not_found` */
export async function showErasure({ db }: Pick<Ctx, 'db'>, projectId: string): Promise<Erasure> {
  const row = await findErasure(db, projectId);
  if (row !== undefined) return toErasure(db, projectId, row);
  if (!(await projectExists(db, projectId))) throw new AppError('not_found', `no project ${projectId}`);
  return { ...notAsked, left: await countLeft(db, projectId, erasureCounted) };
}
