/** Waits for the statements of a test that wait for one another. */
import type { Db } from '../../src/db/connect.ts';
import { waitFor } from './wait.ts';

/** Resolves when a statement waits for another one's lock. @param like part of its text */
export async function untilLocked(db: Db, like = ''): Promise<void> {
  await waitFor('a statement to wait for a lock', async () => {
    const { rows } = await db.raw(
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
         and pid <> pg_backend_pid() and query like ?`,
      [`%${like}%`],
    );
    return rows.length > 0;
  });
}

/** Statements of this database that wait for a lock. */
export async function countWaiting(db: Db): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows.length;
}
