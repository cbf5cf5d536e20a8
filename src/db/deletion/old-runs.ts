/**
 * Runs that may be deleted, by families: a top-level run with all runs below it. A family is deleted as a whole, when
 * all its runs ended long enough ago and none has an open call. A family stays while a run outside of it repeats one of
 * its runs and is open, or has copied results, which refer to files of the family.
 */
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { deletedTables, lineOf, type RowCounts } from './deleted-tables.ts';

export interface Family {
  /** The top-level run. */
  readonly root: string;
  /** Child runs come before their parents; the root is the last. */
  readonly run_ids: readonly string[];
}

interface FamilyPage {
  /** Runs that ended earlier are examined. */
  readonly endedBefore: Date;
  /** Runs with later ids are not examined. */
  readonly upTo: string;
  /** Continues after the id of this root. */
  readonly after: string;
  readonly limit: number;
}

/** A pass examines each family once, even if some are kept. */
export function listEndedFamilies(
  db: Db,
  { endedBefore, upTo, after, limit }: FamilyPage,
): Promise<readonly Family[]> {
  return query<Family>(db).all(
    `with recursive root as (
       select run_id from run
       where run_id > :after and run_id < :upTo and parent_run_id is null and finished_at < :endedBefore
       order by run_id limit :limit
     ), member as (
       select run_id as root, run_id, 0 as level from root
       union all
       select m.root, r.run_id, m.level + 1 from member m join run r on r.parent_run_id = m.run_id
     )
     select root, array_agg(run_id order by level desc, run_id) as run_ids from member group by root order by root`,
    { endedBefore, upTo, after, limit },
  );
}

/** Counts the steps of each run, up to `most`. */
export async function countSteps(
  db: Db,
  runIds: readonly string[],
  most: number,
): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ run_id: string; steps: number }>(db).all(
    `select run_id, (select count(*)::int from (
       select from step s where s.run_id = r.run_id limit :most) few) as steps
     from unnest(:runIds::text[]) r (run_id)`,
    { runIds: [...runIds], most },
  );
  return new Map(rows.map(({ run_id, steps }) => [run_id, steps]));
}

/**
 * Locks the runs to be deleted until the transaction ends. Runs that others have locked are left for a later pass.
 * @returns the runs that may be deleted
 */
export async function lockDeletable(
  trx: Db,
  families: readonly Family[],
  endedBefore: Date,
): Promise<readonly string[]> {
  const runIds = families.flatMap(({ run_ids }) => run_ids);
  const locked = await trx.raw<{ rows: { run_id: string }[] }>(
    'select run_id from run where run_id = any (?) order by run_id for update skip locked',
    [runIds],
  );
  const ours = new Set(locked.rows.map(({ run_id }) => run_id));
  const whole = families.filter(({ run_ids }) => run_ids.every((id) => ours.has(id)));
  const needed = await listNeeded(trx, whole, endedBefore);
  return whole.flatMap(({ root, run_ids }) => (needed.has(root) ? [] : run_ids));
}

/** A separate statement after the locks, so that it sees all commits before them. */
async function listNeeded(
  trx: Db,
  families: readonly Family[],
  endedBefore: Date,
): Promise<ReadonlySet<string>> {
  const rows = await query<{ root: string }>(trx).all(
    `with member as (
       select m.root, m.run_id from unnest(:roots::text[], :runIds::text[]) m (root, run_id)
     )
     select distinct m.root from member m left join run r using (run_id)
     where r.finished_at is null or r.finished_at >= :endedBefore
       or exists (select from run c where c.parent_run_id = m.run_id
         and not exists (select from member o where o.run_id = c.run_id))
       or exists (select from attempt a where a.run_id = m.run_id and a.state in ('reserved', 'dispatched'))
       or exists (select from run y where y.rerun_of = m.run_id
         and not exists (select from member o where o.root = m.root and o.run_id = y.run_id)
         and (y.finished_at is null
           or exists (select from step s where s.run_id = y.run_id and s.reused_from is not null)))`,
    {
      roots: families.flatMap(({ root, run_ids }) => run_ids.map(() => root)),
      runIds: families.flatMap(({ run_ids }) => run_ids),
      endedBefore,
    },
  );
  return new Set(rows.map(({ root }) => root));
}

interface RunPart {
  readonly table: string;
  readonly where: string;
}

const parts: readonly RunPart[] = deletedTables.flatMap(({ table, ofRuns: where }) =>
  where === undefined ? [] : [{ table, where }],
);

function bindingsOf(runIds: readonly string[]) {
  return { runIds: [...runIds], scopes: runIds.map((id) => `run:${id}`) };
}

async function eachPart(count: (part: RunPart) => Promise<number>): Promise<RowCounts> {
  const counts: Record<string, number> = {};
  for (const part of parts) counts[part.table] = await count(part);
  return counts;
}

/** Maximum of rows per statement: deleting all rows of a very large run at once might exceed the statement timeout. */
const mostDeleted = 10_000;

export function deleteRuns(trx: Db, runIds: readonly string[]): Promise<RowCounts> {
  return eachPart(async ({ table, where }) => {
    // A ctid is unique only within a partition; rows of other partitions that it matches belong to these runs too.
    // `is true` keeps that from being read by an index, which would compare each row of a large run with all ctids.
    const statement = `delete from ${table} where (${where}) is true
      and ctid = any (array(select ctid from ${table} where ${where} limit :most))`;
    let deleted = 0;
    let rowCount: number;
    do {
      const bindings = { ...bindingsOf(runIds), most: mostDeleted };
      ({ rowCount } = await trx.raw<{ rowCount: number }>(statement, bindings));
      deleted += rowCount;
    } while (rowCount >= mostDeleted);
    return deleted;
  });
}

export function countRunRows(trx: Db, runIds: readonly string[]): Promise<RowCounts> {
  return eachPart(async ({ table, where }) => {
    const row = await query<{ count: number }>(trx).one(
      `select count(*)::int as count from ${table} where ${where}`,
      bindingsOf(runIds),
    );
    return row.count;
  });
}

/** Yields a line of JSON for each row: `{"table": …, "row": …}`. Rows are read in pages. */
export async function* listRunLines(trx: Db, runIds: readonly string[]): AsyncGenerator<string> {
  for (const { table, where } of parts) {
    await trx.raw(
      `declare run_line no scroll cursor for select ${lineOf(table, 't')} from ${table} t where ${where}`,
      bindingsOf(runIds),
    );
    let page: { rows: { line: string }[] };
    do {
      page = await trx.raw('fetch 1000 from run_line');
      for (const { line } of page.rows) yield line;
    } while (page.rows.length > 0);
    await trx.raw('close run_line');
  }
}
