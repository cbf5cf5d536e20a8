/** What the tables hold, and what Postgres has done, at a moment. */
import pg from 'pg';

/** A table without its indexes, or an index; the parts of a partitioned one are together. */
export interface Holding {
  readonly name: string;
  readonly isIndex: boolean;
  readonly bytes: number;
  /** Of a table; 0 of an index. */
  readonly rows: number;
}

/** Sums since Postgres was started. */
export interface Work {
  readonly transactions: number;
  /** Blocks that statements have looked at, in memory or on the disk. */
  readonly blocks: number;
  /** Of the log. */
  readonly logBytes: number;
}

export interface DayBooks {
  holdings(): Promise<readonly Holding[]>;
  work(): Promise<Work>;
  /** Gives the space of deleted rows back, where it can be. */
  vacuum(): Promise<void>;
  close(): Promise<void>;
}

const relations = `
select coalesce(top.relname, c.relname) as name, c.relkind = 'i' as "isIndex",
  sum(case when c.relkind = 'i' then pg_relation_size(c.oid) else pg_table_size(c.oid) end)::float8 as bytes,
  array_agg(c.relname::text) filter (where c.relkind = 'r') as tables
from pg_class c left join pg_inherits i on i.inhrelid = c.oid left join pg_class top on top.oid = i.inhparent
where c.relkind in ('r', 'i') and c.relnamespace = 'public'::regnamespace
group by 1, 2`;

interface Relation extends Omit<Holding, 'rows'> {
  readonly tables: readonly string[] | null;
}

/** The counters of a database are written once a second by each connection; this one's own are flushed here. */
const counters = `
select xact_commit::float8 as transactions, (blks_hit + blks_read)::float8 as blocks,
  (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as "logBytes"
from pg_stat_database where datname = current_database()`;

export async function openDayBooks(databaseUrl: string): Promise<DayBooks> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const count = async (tables: readonly string[]): Promise<number> => {
    let rows = 0;
    for (const table of tables) {
      const counted = await client.query<{ rows: number }>(
        `select count(*)::float8 as rows from ${client.escapeIdentifier(table)}`,
      );
      rows += counted.rows[0]?.rows ?? 0;
    }
    return rows;
  };
  return {
    holdings: async () => {
      const { rows } = await client.query<Relation>(relations);
      const holdings: Holding[] = [];
      for (const { tables, ...relation } of rows)
        holdings.push({ ...relation, rows: await count(tables ?? []) });
      return holdings;
    },
    work: async () => {
      const { rows } = await client.query<Work>(counters);
      return rows[0] as Work;
    },
    vacuum: async () => {
      await client.query('vacuum');
    },
    close: () => client.end(),
  };
}
