/**
 * Begins the erasure of a project, and tells how far it is. It concerns what all projects share (the registry, keys that
 * hold several, ledger and audit log), so it asks for the scope `operator`, whatever projects the key holds. From the
 * first moment the project takes no new work; the rest is done by maintenance (erase-projects.ts).
 */
import type { Erasure } from '../../contracts/access.ts';
import { erasureCounted } from '../../contracts/bounds.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { lockKeys } from '../../db/access/key-lineage.ts';
import { findOldestProject, projectExists } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import { untieKeys } from '../../db/erasure/erased-keys.ts';
import { type ErasureRow, findErasure, insertErasure, markErasing } from '../../db/erasure/erasure.ts';
import { countLeft } from '../../db/erasure/left-rows.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { newId } from '../ids.ts';

const notAsked = {
  pseudonym: null,
  state: 'none',
  requested_at: null,
  finished_at: null,
  deleted: {},
} as const;

async function toErasure(db: Db, projectId: string, row: ErasureRow): Promise<Erasure> {
  const { pseudonym, requested_at, finished_at, deleted } = row;
  return {
    pseudonym,
    state: finished_at === null ? 'erasing' : 'erased',
    requested_at: requested_at.toISOString(),
    finished_at: finished_at?.toISOString() ?? null,
    deleted: { ...deleted },
    left: finished_at === null ? await countLeft(db, projectId, erasureCounted) : {},
  };
}

async function refuseNeeded(trx: Db, { key_id, projects }: Caller, projectId: string): Promise<void> {
  if ((await findOldestProject(trx, 'default'))?.project_id === projectId)
    throw new AppError(
      'state_conflict',
      `${projectId} is the default project, which a start would make anew`,
    );
  if (projects.length === 1 && projects[0] === projectId)
    throw new AppError(
      'state_conflict',
      `${key_id} holds ${projectId} alone and would end with it; use a key that holds another project`,
    );
}

function begin(db: Db, caller: Caller, projectId: string): Promise<ErasureRow> {
  return db.transaction(async (trx) => {
    await lockKeys(trx);
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
}

export function createErasureService(db: Db) {
  return {
    /** Repeated, it tells how far it is. @throws AppError `not_found`, `state_conflict` */
    begin: async (caller: Caller, projectId: string): Promise<Erasure> =>
      toErasure(db, projectId, await begin(db, caller, projectId)),

    /** Also before anybody asks for it: what would go. @throws AppError `not_found` */
    show: async (projectId: string): Promise<Erasure> => {
      const row = await findErasure(db, projectId);
      if (row !== undefined) return toErasure(db, projectId, row);
      if (!(await projectExists(db, projectId))) throw new AppError('not_found', `no project ${projectId}`);
      return { ...notAsked, left: await countLeft(db, projectId, erasureCounted) };
    },
  };
}

export type ErasureService = ReturnType<typeof createErasureService>;
