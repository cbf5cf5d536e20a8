/** Results that are kept, as people look at them; calls under way are none yet. */
import type { CacheRemoval } from '../../contracts/cache.ts';
import type { Db } from '../connect.ts';

export interface ListedResultRow {
  /** Hex. */
  readonly key: string;
  readonly capability: string;
  readonly pipeline: string;
  readonly run_id: string;
  readonly step_id: string;
  readonly item: number;
  /** bigint as text */
  readonly cost_nano: string;
  readonly files: number;
  readonly stored_at: Date;
  /** As text, exact. */
  readonly place: string;
  readonly expires_at: Date;
}

/** The last one of the page before. */
export type ResultPlace = Pick<ListedResultRow, 'place' | 'key'>;

export type ResultFilter = Omit<CacheRemoval, 'key'> & {
  readonly after: ResultPlace | null;
  readonly limit: number;
};

type Which = Partial<Record<keyof CacheRemoval, string | undefined>>;

function conditionsOf({ key, capability, pipeline, run_id }: Which): string {
  return [
    'c.project_id = :projectId and c.stored_at is not null',
    ...(key === undefined ? [] : [`c.key = decode(:key, 'hex')`]),
    ...(capability === undefined ? [] : ['c.capability = :capability']),
    ...(pipeline === undefined ? [] : ['c.pipeline = :pipeline']),
    ...(run_id === undefined ? [] : ['c.run_id = :run_id']),
  ].join(' and ');
}

/** Newest first; those that are too old are left out. */
export async function listResults(
  db: Db,
  projectId: string,
  { after, limit, ...which }: ResultFilter,
): Promise<readonly ListedResultRow[]> {
  const next =
    after === null ? '' : `and (c.stored_at, c.key) < (cast(:place as timestamptz), decode(:lastKey, 'hex'))`;
  const { rows } = await db.raw<{ rows: ListedResultRow[] }>(
    `select encode(c.key, 'hex') as key, c.capability, c.pipeline, c.run_id, c.step_id, c.item, c.stored_at,
       c.stored_at::text as place, c.expires_at, coalesce(a.settled_nano, 0)::text as cost_nano,
       (select count(*)::int from json_object_keys(c.files)) as files
     from cached_result c left join attempt a using (attempt_id)
     where ${conditionsOf(which)} and c.expires_at > now() ${next}
     order by c.stored_at desc, c.key desc limit :limit`,
    { projectId, ...which, place: after?.place, lastKey: after?.key, limit },
  );
  return rows;
}

/** @returns how many */
export async function removeResults(db: Db, projectId: string, which: CacheRemoval): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `delete from cached_result c where ${conditionsOf(which)}`,
    { projectId, ...which },
  );
  return rowCount;
}

const batch = 1_000;

/** What nobody may take any more, and calls that nobody has ended. @returns how many */
export async function purgeResults(db: Db): Promise<number> {
  let purged = 0;
  for (;;) {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from cached_result where ctid = any (array(
         select ctid from cached_result where expires_at < now() order by expires_at limit ?))`,
      [batch],
    );
    purged += rowCount;
    if (rowCount < batch) return purged;
  }
}
