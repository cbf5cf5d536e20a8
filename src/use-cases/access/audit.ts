import { AuditEntry, type AuditQuery } from '@capstan/core/contracts/access';
import { toWire } from '@capstan/core/contracts/to-wire';
import type { Logger } from 'pino';
import type { ServerCtx } from '../../context.ts';
import { type AuditRow, listAudit, listenToAudits } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { decodeNumberCursor, toPage } from '../cursor.ts';
import { type Caller, isOperator } from './caller.ts';

function toEntry(row: AuditRow): AuditEntry {
  return toWire(AuditEntry, { ...row, entry_id: row.entry });
}

/** Entries of one statement of an export. */
const exportPage = 1_000;

type Range = Pick<AuditQuery, 'subject' | 'from' | 'to'>;

/** Lists the whole range as lines of JSON, oldest first; one page at a time is in memory. */
export async function* exportAudit(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  caller: Caller,
  { subject, from, to }: Range,
): AsyncGenerator<string, void, undefined> {
  const filter = { withGlobal: isOperator(caller), subject, from, to, isAscending: true, limit: exportPage };
  let after: string | undefined;
  for (;;) {
    const rows: readonly AuditRow[] = await listAudit(historyDb, caller.project_id, { ...filter, after });
    if (rows.length > 0) yield rows.map((row) => `${JSON.stringify(toEntry(row))}\n`).join('');
    if (rows.length < exportPage) return;
    after = rows.at(-1)?.entry;
  }
}

/** Logs a line for every entry, when it is committed. */
export function logAudits(db: Db, logger: Logger): void {
  listenToAudits(db, ({ entry, project_id, actor, action, subject, data }) =>
    logger.info({ audit: { entry_id: entry, project_id, actor, action, subject, data } }, 'audit'),
  );
}

/**
 * Lists the entries of the caller's project, newest first; an operator also sees entries that concern all projects.
 * @throws AppError `request_invalid` for an invalid cursor
 */
export async function listAuditOf(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  caller: Caller,
  { cursor, limit, ...range }: AuditQuery,
) {
  const after = cursor === undefined ? undefined : decodeNumberCursor(cursor);
  const filter = { ...range, withGlobal: isOperator(caller), after, limit: limit + 1 };
  const rows = await listAudit(historyDb, caller.project_id, filter);
  return toPage(rows, limit, { key: (row) => row.entry, item: toEntry });
}
