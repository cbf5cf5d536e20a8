/**
 * Controls which projects may share instances of a name: a shared instance takes calls of others. An instance that
 * serves its own project alone needs no publisher. P1: the project that registers a name first is its publisher. P2: an
 * operator assigns a name to other projects; the same transaction ends the sharing of other projects' instances, and
 * the publishers may register at their addresses. P3: a name that no operator has assigned is free again when its last
 * instance is deleted.
 */

import { Publisher } from '@capstan/core/contracts/capability';
import { toWire } from '@capstan/core/contracts/to-wire';
import { refuseField } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import { listProjects } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import {
  listPublishers,
  type PublisherRow,
  setPublishers,
  unshareForeignInstances,
} from '../../db/instance/capability-name.ts';
import { decodeCursor, type PageRequest, toPage } from '../cursor.ts';
import type { RegistryActor } from './deregistration.ts';

function toPublisher(row: PublisherRow): Publisher {
  return toWire(Publisher, row);
}

async function requireKnown(db: Db, projects: readonly string[]): Promise<void> {
  const rows = await listProjects(db, { ids: projects, after: null, limit: projects.length });
  const known = new Set(rows.map(({ project_id }) => project_id));
  const missing = projects.filter((project) => !known.has(project));
  if (missing.length > 0) throw refuseField('/projects', `there is no project ${missing.join(', ')}`);
}

/** Takes effect with the next registration. @throws AppError `request_invalid` for an unknown project */
export async function publishName(
  { db }: Pick<Ctx, 'db'>,
  { key_id }: Pick<RegistryActor, 'key_id'>,
  { name, projects }: { readonly name: string; readonly projects: readonly string[] },
): Promise<Publisher> {
  await requireKnown(db, projects);
  return db.transaction(async (trx) => {
    const row = await setPublishers(trx, { name, projects: [...new Set(projects)], by: key_id });
    await unshareForeignInstances(trx, name, projects);
    const entry = { project_id: null, actor: key_id, action: 'capability.published', subject: name };
    await insertAudit(trx, { ...entry, data: { projects: [...row.projects] } });
    return toPublisher(row);
  });
}

/** By name. */
export async function listNamePublishers({ db }: Pick<Ctx, 'db'>, { limit, cursor }: PageRequest) {
  const after = cursor === undefined ? null : decodeCursor(cursor);
  const rows = await listPublishers(db, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: ({ name }) => name, item: toPublisher });
}
