/** Administrative acts. Rows are added, never changed: the database refuses it. */
import type { JsonObject } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';
import { toJsonb } from '../jsonb.ts';

export interface NewAuditEntry {
  /** Null: of no project. */
  readonly project_id: string | null;
  /** A key, or a part of Capstan. */
  readonly actor: string;
  /** `skill.retired` */
  readonly action: string;
  /** Id of what it was done to. */
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
  await db('audit').insert(entries.map((entry) => ({ ...entry, data: toJsonb(entry.data) })));
}

interface AuditFilter {
  /** Entries of no project too. */
  readonly withGlobal?: boolean;
  readonly subject?: string | undefined;
  /** The last entry of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function listAudit(
  db: Db,
  project_id: string,
  { withGlobal = false, subject, after, limit }: AuditFilter,
): Promise<readonly AuditRow[]> {
  const query = db('audit').orderBy('entry', 'desc').limit(limit);
  if (withGlobal) query.where((of) => of.where({ project_id }).orWhereNull('project_id'));
  else query.where({ project_id });
  if (subject !== undefined) query.where({ subject });
  if (after !== undefined) query.where('entry', '<', after);
  return query.select('*');
}
