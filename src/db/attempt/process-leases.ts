/**
 * Renews the leases of all open attempts of a process, by one statement that needs no list of them: each has the token
 * of its process. The same statement renews the Idempotency-Keys of the process, from a list. Only freeze-thread.ts does
 * so, with a connection for that time alone, while its process does not turn and cannot list its attempts.
 */
import pg from 'pg';
import { connectionTo } from '../connection.ts';
import type { KeyHold } from '../idempotency.ts';

export interface ProcessLeases {
  /** @param keys that the process may hold @returns how many attempts were renewed */
  renew(keys?: readonly KeyHold[]): Promise<number>;
  close(): Promise<void>;
}

const statementMs = 5_000;

/** Attempts that another process is ending now are locked, and end. Those of ended runs are not renewed. */
const renewal = `
with kept as (
  select i.project_id, i.request, i.key
  from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as h (project_id, request, key, holder)
  join idempotency i on i.project_id = h.project_id and i.request = h.request and i.key = h.key
    and i.status = 0 and i.answer #>> '{}' = h.holder
  order by i.project_id, i.request, i.key for update of i skip locked
), keys as (
  update idempotency i set created_at = clock_timestamp() from kept
  where i.project_id = kept.project_id and i.request = kept.request and i.key = kept.key
), held as (
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
    renew: async (keys = []) => {
      const columns = (['project_id', 'request', 'key', 'holder'] as const).map((name) =>
        keys.map((key) => key[name]),
      );
      try {
        const { rowCount } = await (client ?? (await connect())).query(renewal, [token, leaseMs, ...columns]);
        return rowCount ?? 0;
      } catch (error) {
        await close();
        throw error;
      }
    },
    close,
  };
}
