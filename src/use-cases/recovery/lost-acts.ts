/**
 * Finds the changes of keys after the backup, which the restored database does not know: a key that was revoked works
 * again, and so does a secret that was replaced. An audit log that was kept elsewhere holds them: its export, or the
 * log of servers, which has a line for each entry.
 */

import { AppError } from '@capstan/core/errors/app-error';
import { parseJson } from '@capstan/core/json/text';
import { z } from 'zod';
import { revokeWithKeysBelow } from '../../db/access/api-key.ts';
import { insertAudits } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { takeLock } from '../../db/locks.ts';
import type { KeyAct } from '../../db/recovery.ts';

const Entry = z.object({
  entry_id: z.string(),
  action: z.enum(['key.created', 'key.revoked', 'key.rotated']),
  subject: z.string(),
});
const AnyEntry = z.object({ entry_id: z.string(), action: z.string(), subject: z.string() });
const LogLine = z.object({ audit: AnyEntry });

/** @throws AppError `request_invalid` when no line is an entry: it is another file */
export async function readKeyActs(lines: AsyncIterable<string> | Iterable<string>): Promise<KeyAct[]> {
  const acts: KeyAct[] = [];
  let entries = 0;
  for await (const line of lines) {
    const value = parseJson(line); // a process may write other lines into its log
    const logged = LogLine.safeParse(value);
    const entry = AnyEntry.safeParse(logged.success ? logged.data.audit : value);
    if (!entry.success) continue;
    entries++;
    const act = Entry.safeParse(entry.data);
    if (act.success) acts.push(act.data);
  }
  if (entries > 0) return acts;
  throw new AppError('request_invalid', 'the audit file has no line that is an entry of the audit log');
}

/** Includes the keys below them. @returns the keys that worked until then */
export function revokeAgain(db: Db, keyIds: readonly string[]): Promise<readonly string[]> {
  return db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    const all: string[] = [];
    for (const keyId of keyIds) {
      const revoked = await revokeWithKeysBelow(trx, keyId);
      const entries = revoked.flatMap(({ key_id, projects }) =>
        projects.map((project_id) => ({
          project_id,
          actor: 'recover',
          action: 'key.revoked',
          subject: key_id,
          data: { revoked_with: keyId },
        })),
      );
      if (entries.length > 0) await insertAudits(trx, entries);
      all.push(...revoked.map(({ key_id }) => key_id));
    }
    return all;
  });
}
