/**
 * Events and instances carry the number of the transaction that wrote them, by which logs are ordered and changes are
 * polled. A dump that is restored brings numbers of another cluster, whose counter may have been ahead of this one's:
 * its events would lie in the future, unread, and new ones before them. So whoever starts first on another cluster
 * brings them below every number of this one, in their order; logs and their numbers stay as they were.
 */
import type { Db } from './connect.ts';

/** What the transactions of this cluster have not reached. */
const ahead = 'pg_snapshot_xmax(pg_current_snapshot())';

async function readClusterId(db: Db): Promise<string | null> {
  const allowed = `select has_function_privilege('pg_control_system()', 'execute') as may_read`;
  const { rows } = await db.raw<{ rows: [{ may_read: boolean }] }>(allowed);
  if (!rows[0].may_read) return null;
  const answer = await db.raw<{ rows: [{ id: string }] }>(
    'select system_identifier::text as id from pg_control_system()',
  );
  return answer.rows[0].id;
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
  const id = await readClusterId(db);
  const known: { system_identifier: string | null } | undefined = await db('cluster').first();
  if (id !== null && known?.system_identifier === id) return null;
  return db.transaction(async (trx) => {
    const events = await lowerEvents(trx);
    // Their trigger gives them this transaction, so that every router reads them once more.
    const { rowCount: instances } = await trx.raw<{ rowCount: number }>(
      `update instance set changed_xid = changed_xid where changed_xid >= ${ahead}`,
    );
    await trx('cluster').insert({ system_identifier: id, is_only: true }).onConflict('is_only').merge();
    return { events, instances };
  });
}
