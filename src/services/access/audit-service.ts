import type { AuditEntry, AuditQuery } from '../../contracts/audit.ts';
import { type AuditRow, listAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { decodeNumberCursor, toPage } from '../cursor.ts';
import { type Caller, isOperator } from './caller.ts';

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
    /**
     * Lists the entries of the caller's project, newest first; an operator also sees what concerns all projects.
     * @throws AppError `request_invalid` for a cursor that is none
     */
    list: async (caller: Caller, { subject, limit, cursor }: AuditQuery) => {
      const after = cursor === undefined ? undefined : decodeNumberCursor(cursor);
      const filter = { withGlobal: isOperator(caller), subject, after, limit: limit + 1 };
      const rows = await listAudit(db, caller.project_id, filter);
      return toPage(rows, limit, { key: (row) => row.entry, item: toEntry });
    },
  };
}

export type AuditService = ReturnType<typeof createAuditService>;
