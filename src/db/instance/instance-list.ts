/** Instances as the registry shows them, grouped by capability name. */
import type { InstanceState } from '../../contracts/capability.ts';
import type { Db } from '../connect.ts';
import { type InstanceRow, instanceColumns } from './instance.ts';

export interface ListedInstance extends InstanceRow {
  /** `draining`: deregistered with calls still open. `evicted`: down for long. */
  readonly shown_state: InstanceState;
}

const listed = `(
  select v.*, case when v.state = 'deregistered' and v.in_flight > 0 then 'draining'
    when v.is_evicted then 'evicted' else v.state end as shown_state
  from (select ${instanceColumns} from instance i) v
)`;

/**
 * The instances of the first `limit` capability names after `after` that have any, by name.
 * @param state null shows all but the evicted and the deregistered
 */
export async function listInstancePage(
  db: Db,
  {
    tag,
    state,
    after,
    limit,
  }: { tag: string | null; state: InstanceState | null; after: string | null; limit: number },
): Promise<ListedInstance[]> {
  const { rows } = await db.raw<{ rows: ListedInstance[] }>(
    `with shown as (
       select * from ${listed} l
       where (?::text is null or ? = any(l.tags))
         and case when ?::text is null then l.shown_state not in ('evicted', 'deregistered') else l.shown_state = ? end
         and (?::text is null or l.name collate "C" > ?)
     ), page as (select distinct name collate "C" as name from shown order by 1 limit ?)
     select shown.* from shown join page on page.name = shown.name
     order by shown.name collate "C", shown.registered_at, shown.instance_id`,
    [tag, tag, state, state, after, after, limit],
  );
  return rows;
}

export async function listInstancesByName(db: Db, name: string): Promise<ListedInstance[]> {
  const { rows } = await db.raw<{ rows: ListedInstance[] }>(
    `select * from ${listed} l where l.name = ? order by l.registered_at, l.instance_id`,
    [name],
  );
  return rows;
}

/** Those that have changed since a horizon, and these. */
export async function listChangedInstances(
  db: Db,
  since: string,
  ids: readonly string[],
): Promise<InstanceRow[]> {
  const { rows } = await db.raw<{ rows: InstanceRow[] }>(
    `select ${instanceColumns} from instance i
     where i.changed_xid >= ?::text::xid8 or i.instance_id = any (?)`,
    [since, [...ids]],
  );
  return rows;
}

/** How many calls each instance has; without those that have none. */
export async function countHeldCalls(db: Db): Promise<ReadonlyMap<string, number>> {
  const { rows } = await db.raw<{ rows: { instance_id: string; held: number }[] }>(
    `select instance_id, count(*)::int as held from attempt where state in ('reserved', 'dispatched') group by 1`,
  );
  return new Map(rows.map(({ instance_id, held }) => [instance_id, held]));
}
