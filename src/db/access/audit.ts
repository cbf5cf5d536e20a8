/** Administrative acts. Rows are only added: the database refuses changes. */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Knex } from 'knex';
import type { Db } from '../connect.ts';
import { toJsonb } from '../statements.ts';

export interface NewAuditEntry {
  /** Null: it concerns no single project. */
  readonly project_id: string | null;
  /** A key, or a part of Capstan. */
  readonly actor: string;
  /** For example `skill.retired`. */
  readonly action: string;
  /** Id of the object of the act. */
  readonly subject: string;
  readonly data: JsonObject;
}

export interface AuditRow extends NewAuditEntry {
  /** bigint as text */
  readonly entry: string;
  readonly at: Date;
}

export function insertAudit(db: Db, entry: NewAuditEntry): Promise<void> {
  return insertAudits(db, [entry]);
}

/** @param entries at least one */
export async function insertAudits(db: Db, entries: readonly NewAuditEntry[]): Promise<void> {
  const rows = entries.map((entry) => ({ ...entry, data: toJsonb(entry.data) }));
  const stored = await db('audit').insert(rows).returning('*');
  const tell: AuditListener | undefined = db.userParams[listenerPlace];
  if (tell === undefined) return;
  const settled = isTransaction(db) ? db.executionPromise : Promise.resolve();
  settled.then(
    () => stored.forEach(tell),
    () => undefined, // rolled back: the act did not happen
  );
}

export type AuditListener = (row: AuditRow) => void;

const listenerPlace = 'audits';

/** Calls the listener for every entry written through `db`, after its commit. */
export function listenToAudits(db: Db, listener: AuditListener): void {
  db.userParams = { ...db.userParams, [listenerPlace]: listener };
}

function isTransaction(db: Db): db is Knex.Transaction {
  return db.isTransaction === true;
}

interface AuditFilter {
  /** Includes entries that concern no single project. */
  readonly withGlobal?: boolean;
  readonly subject?: string | undefined;
  /** The last entry of the previous page. */
  readonly after?: string | undefined;
  readonly from?: string | undefined;
  /** Exclusive. */
  readonly to?: string | undefined;
  /** Oldest first instead of newest first. */
  readonly isAscending?: boolean;
  readonly limit: number;
}

/** Newest first by default. */
export async function listAudit(
  db: Db,
  project_id: string,
  { withGlobal = false, subject, after, from, to, isAscending = false, limit }: AuditFilter,
): Promise<readonly AuditRow[]> {
  const query = db('audit')
    .orderBy('entry', isAscending ? 'asc' : 'desc')
    .limit(limit);
  if (withGlobal) query.where((of) => of.where({ project_id }).orWhereNull('project_id'));
  else query.where({ project_id });
  if (subject !== undefined) query.where({ subject });
  if (after !== undefined) query.where('entry', isAscending ? '>' : '<', after);
  if (from !== undefined) query.where('at', '>=', from);
  if (to !== undefined) query.where('at', '<', to);
  return query.select('*');
}
