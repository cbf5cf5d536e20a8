/**
 * Renews the leases of all open attempts of a process, by one statement that needs no list of them: each has the token
 * of its process. Only the thread of freeze-thread.ts does so, while its process does not turn and cannot say which
 * attempts it still makes. It has one connection of its own, which is open for that time alone.
 */
import pg from 'pg';
import { connectionTo } from '../connection.ts';

export interface ProcessLeases {
  /** @returns how many were renewed */
  renew(): Promise<number>;
  close(): Promise<void>;
}

const statementMs = 5_000;

/** Attempts that another process is ending now are locked, and end. Those of ended runs are not renewed. */
const renewal = `
with held as (
  select a.attempt_id from attempt a left join run r on r.run_id = a.run_id
  where a.token = $1 and a.state in ('reserved', 'dispatched') and r.finished_at is null
  order by a.attempt_id for update of a skip locked
)
update attempt a set lease_until = clock_timestamp() + $2 * interval '1 millisecond'
from held where a.attempt_id = held.attempt_id`;

/** @param token of the attempts of the process */
export function createProcessLeases(url: string, token: string, leaseMs: number): ProcessLeases {
  let client: pg.Client | null = null;

  const close = async (): Promise<void> => {
    const open = client;
    client = null;
    await open?.end().catch(() => undefined);
  };

  const connect = async (): Promise<pg.Client> => {
    const made = new pg.Client({
      ...connectionTo(url),
      statement_timeout: statementMs,
      query_timeout: statementMs,
    });
    made.on('error', () => undefined); // the next statement fails, and is repeated on a new connection
    client = made;
    await made.connect();
    return made;
  };

  return {
    renew: async () => {
      try {
        const { rowCount } = await (client ?? (await connect())).query(renewal, [token, leaseMs]);
        return rowCount ?? 0;
      } catch (error) {
        await close();
        throw error;
      }
    },
    close,
  };
}
