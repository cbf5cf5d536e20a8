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

export async function insertAudit(db: Db, entry: NewAuditEntry): Promise<void> {
  await db('audit').insert({ ...entry, data: toJsonb(entry.data) });
}

/** Newest first. @param filter after: the last entry of the page before */
export async function listAudit(
  db: Db,
  projectId: string,
  {
    subject,
    after,
    limit,
  }: { readonly subject?: string | undefined; readonly after?: string | undefined; readonly limit: number },
): Promise<readonly AuditRow[]> {
  const query = db('audit').where({ project_id: projectId }).orderBy('entry', 'desc').limit(limit);
  if (subject !== undefined) query.where({ subject });
  if (after !== undefined) query.where('entry', '<', after);
  return query.select('*');
}
