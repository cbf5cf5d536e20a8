/**
 * Events and instances carry the number of the transaction that wrote them, by which logs are ordered and changes are
 * polled. A dump that is restored brings numbers of another cluster, whose counter may have been ahead of this one's:
 * its events would lie in the future, unread, and new ones before them. So whoever starts first on another cluster
 * brings them below every number of this one, in their order; logs and their numbers stay as they were.
 */
import type { Db } from './connect.ts';

/** What the transactions of this cluster have not reached. */
const ahead = 'pg_snapshot_xmax(pg_current_snapshot())';

/**
 * Whether the row that we wrote is the one that stands there. It says by which transaction it was written, and so does its
 * tuple: whatever copies rows writes them by a transaction of its own. A file copy of a cluster keeps both, and its counter.
 */
async function isKnown(db: Db): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { is_own: boolean }[] }>(
    `select written_by::text::numeric % 4294967296 = xmin::text::numeric as is_own from cluster`,
  );
  return rows[0]?.is_own === true;
}

/** What was brought below the numbers of this cluster. */
export interface Adoption {
  readonly events: number;
  readonly instances: number;
}

/** Those of an earlier restore stay before all others. @returns how many it has lowered */
async function lowerEvents(trx: Db): Promise<number> {
  await trx.raw('lock table event in share row exclusive mode');
  const { rows } = await trx.raw<{ rows: [{ is_ahead: boolean }] }>(
    `select exists (select 1 from event where xid >= ${ahead}) as is_ahead`,
  );
  if (!rows[0].is_ahead) return 0;
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `with lowered as (
       select run_id, max(id) as last from event where xid = '0' group by run_id
     ), ranked as (
       select e.run_id, e.xid, e.id,
         coalesce(l.last, 0) + row_number() over (partition by e.run_id order by e.xid, e.id) as place
       from event e left join lowered l using (run_id) where e.xid > '0'
     )
     update event e set xid = '0', id = r.place
     from ranked r where e.run_id = r.run_id and e.xid = r.xid and e.id = r.id`,
  );
  return rowCount;
}

/** Does nothing on the cluster that it knows. @returns null then */
export async function adoptCluster(db: Db): Promise<Adoption | null> {
  if (await isKnown(db)) return null;
  return db.transaction(async (trx) => {
    const events = await lowerEvents(trx);
    // Their trigger gives them this transaction, so that every router reads them once more.
    const { rowCount: instances } = await trx.raw<{ rowCount: number }>(
      `update instance set changed_xid = changed_xid where changed_xid >= ${ahead}`,
    );
    await trx.raw(
      'insert into cluster (is_only) values (true) on conflict (is_only) do update set written_by = excluded.written_by',
    );
    return { events, instances };
  });
}
