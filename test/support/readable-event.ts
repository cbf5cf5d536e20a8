import type { Db } from '../../src/db/connect.ts';
import { readHorizon } from '../../src/db/run/event.ts';
import { waitFor } from './wait.ts';

async function untilPassed(db: Db, xid: bigint): Promise<void> {
  await waitFor('the horizon to pass the event', async () => BigInt(await readHorizon(db)) > xid);
}

/** Resolves when every reader can see earlier writes: no older transaction of the cluster is open any more. */
export async function untilReadable(db: Db): Promise<void> {
  const { rows } = await db.raw<{ rows: { xid: string }[] }>('select pg_current_xact_id()::text as xid');
  await untilPassed(db, BigInt(rows[0]?.xid ?? 0));
}

/** Writes one event of a run; every reader can see it when this resolves. */
export async function writeReadableEvent(db: Db, runId: string): Promise<void> {
  const { rows } = await db.raw<{ rows: { xid: string }[] }>(
    `insert into event (run_id, type) values (?, 'step.routed') returning xid::text`,
    [runId],
  );
  await untilPassed(db, BigInt(rows[0]?.xid ?? 0));
}
