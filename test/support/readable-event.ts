import type { Db } from '../../src/db/connect.ts';
import { readHorizon } from '../../src/db/run/event.ts';
import { waitFor } from './wait.ts';

/** Writes one event of a run, which every reader may see when this resolves. */
export async function writeReadableEvent(db: Db, runId: string): Promise<void> {
  const { rows } = await db.raw<{ rows: { xid: string }[] }>(
    `insert into event (run_id, type) values (?, 'step.routed') returning xid::text`,
    [runId],
  );
  const xid = BigInt(rows[0]?.xid ?? 0);
  await waitFor('the horizon to pass the event', async () => BigInt(await readHorizon(db)) > xid);
}
