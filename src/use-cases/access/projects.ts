/** Projects. A project that a key creates belongs to that key and its ancestors, so the key's author holds it. */

import type { Project, ProjectRequest, ProjectSettings } from '@capstan/core/contracts/access';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { Ctx, ServerCtx } from '../../context.ts';
import { addProjectUpwards } from '../../db/access/api-key.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { holdsEvery } from '../../db/access/person.ts';
import {
  changeProjectRow,
  insertProject,
  isKnownTimezone,
  listProjects,
  type ProjectRow,
} from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import { takeLock } from '../../db/locks.ts';
import { limitDaysAgain } from '../../db/money/scoped-budget.ts';
import { forgetKeys } from '../../parts/access/verified-keys.ts';
import { newId } from '../../parts/ids.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import type { Caller } from './caller.ts';
import type { KeyCtx } from './identification.ts';

function toProject({ daily_limit_nano, is_strict, created_at, ...row }: ProjectRow): Project {
  return {
    ...row,
    strict: is_strict,
    daily_limit_usd: fromNanoUsd(BigInt(daily_limit_nano)),
    created_at: created_at.toISOString(),
  };
}

/** Postgres knows names that are no zone of a place, such as `posixrules`. */
export function isZoneOfPlace(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone });
    return true;
  } catch {
    return false;
  }
}

/** @throws AppError `request_invalid` */
async function requireTimezone(db: Db, timezone: string): Promise<void> {
  if ((await isKnownTimezone(db, timezone)) && isZoneOfPlace(timezone)) return;
  throw refuseField('/timezone', `${JSON.stringify(timezone)} is no IANA time zone; one is Europe/Berlin`);
}

/** @throws AppError `request_invalid` for an unknown time zone, `forbidden` for a person who would not hold it */
export async function createProject(
  { db, verifiedKeys }: KeyCtx,
  { key_id, byProject }: Caller,
  { name, timezone, daily_limit_usd }: ProjectRequest,
): Promise<Project> {
  await requireTimezone(db, timezone);
  if (byProject !== undefined && !(await holdsEvery(db, key_id)))
    throw new AppError(
      'forbidden',
      `${key_id} holds the projects of their groups; a key makes projects, or who is in a group that holds all (*)`,
    );
  const project_id = newId('project');
  const daily_limit_nano = toNanoUsd(daily_limit_usd);
  const { row, holders } = await db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const row = await insertProject(trx, { project_id, name, timezone, daily_limit_nano });
    const holders = await addProjectUpwards(trx, key_id, project_id);
    const entry = { actor: key_id, action: 'project.created', subject: project_id };
    await insertAudit(trx, { ...entry, project_id, data: { name } });
    return { row, holders };
  });
  forgetKeys(verifiedKeys, holders);
  return toProject(row);
}

/** What changes; what is absent stays. */
function toAudited(change: ProjectSettings): JsonObject {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}

/**
 * Every process uses it within 5 s. With another time zone, the dates that have begun there get the limits of now.
 * @throws AppError `not_found` for a project that the caller does not hold, `request_invalid` for an unknown time zone
 */
export async function changeProject(
  { db, modelRules, keptContents }: Pick<ServerCtx, 'db' | 'modelRules' | 'keptContents'>,
  { key_id, projects }: Caller,
  { project_id, ...settings }: ProjectSettings & { readonly project_id: string },
): Promise<Project> {
  const { strict, timezone, ...same } = settings;
  if (timezone !== undefined) await requireTimezone(db, timezone);
  const row = await db.transaction(async (trx) => {
    const changed = projects.includes(project_id)
      ? await changeProjectRow(trx, { project_id, is_strict: strict, timezone, ...same })
      : undefined;
    if (changed === undefined) throw new AppError('not_found', `there is no project ${project_id}`);
    if (timezone !== undefined) await limitDaysAgain(trx, changed);
    const entry = { actor: key_id, action: 'project.changed', subject: project_id };
    await insertAudit(trx, { ...entry, project_id, data: toAudited(settings) });
    return changed;
  });
  modelRules.forget(project_id);
  keptContents.forget(project_id);
  return toProject(row);
}

export async function listProjectsOf(
  { db }: Pick<Ctx, 'db'>,
  { projects }: Caller,
  { limit, cursor }: PageRequest,
) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listProjects(db, { ids: projects, after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.project_id, item: toProject });
}
