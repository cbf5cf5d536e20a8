import type { AuditEntry, AuditQuery } from '../../contracts/audit.ts';
import { type AuditRow, listAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { decodeNumberCursor, toPage } from '../cursor.ts';
import type { Caller } from './caller.ts';

function toEntry({ entry, at, actor, action, subject, data }: AuditRow): AuditEntry {
  return {
    entry_id: entry,
    at: at.toISOString(),
    actor,
    action,
    subject,
    data,
  };
}

export function createAuditService(db: Db) {
  return {
    /** Of the caller's project, newest first. @throws AppError `request_invalid` for a cursor that is none */
    list: async ({ project_id }: Caller, { subject, limit, cursor }: AuditQuery) => {
      const after = cursor === undefined ? undefined : decodeNumberCursor(cursor);
      const rows = await listAudit(db, project_id, { subject, after, limit: limit + 1 });
      return toPage(rows, limit, { key: (row) => row.entry, item: toEntry });
    },
  };
}

export type AuditService = ReturnType<typeof createAuditService>;
