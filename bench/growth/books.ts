/** How large the tables are, and how much of Postgres' log each database has written. */
import pg from 'pg';

export interface Books {
  /** Where the log ends, as Postgres writes it. */
  readonly lsn: string;
  /** Bytes by table of Capstan's database, parts with their table, and by database of the others. */
  readonly bytes: ReadonlyMap<string, number>;
}

/** Bytes of the log by database, per run. */
export interface WrittenLog {
  readonly log: ReadonlyMap<string, number>;
}

export interface OpenBooks {
  read(): Promise<Books>;
  writtenBy(before: Books, after: Books, runs: number): Promise<WrittenLog>;
  close(): Promise<void>;
}

const tables = `
  select 'capstan: ' || coalesce(p.relname, c.relname) as name, sum(pg_total_relation_size(c.oid))::float8 as bytes
  from pg_class c left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
  where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by 1
  union all
  select datname, pg_database_size(oid)::float8 from pg_database where datname like 'temporal%'`;

/** Blocks are attributed to their owner; the rest of a record is shared out alike. */
const log = `
  select coalesce(d.datname, 'shared') as name, sum(b.block_data_length + b.block_fpi_length)::float8 as bytes
  from pg_get_wal_block_info($1::pg_lsn, $2::pg_lsn, false) b left join pg_database d on d.oid = b.reldatabase
  group by 1`;

interface Sum {
  readonly name: string;
  readonly bytes: number;
}

export async function openBooks(databaseUrl: string): Promise<OpenBooks> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query('create extension if not exists pg_walinspect');
  const read = async (): Promise<Books> => {
    const { rows } = await client.query<Sum>(tables);
    const end = await client.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn');
    return { lsn: end.rows[0]?.lsn ?? '0/0', bytes: new Map(rows.map(({ name, bytes }) => [name, bytes])) };
  };
  const writtenBy = async (before: Books, after: Books, runs: number): Promise<WrittenLog> => {
    const span = [before.lsn, after.lsn];
    const { rows } = await client.query<Sum>(log, span);
    const all = await client.query<{ bytes: number }>(
      'select ($2::pg_lsn - $1::pg_lsn)::float8 as bytes',
      span,
    );
    const known = rows.reduce((sum, { bytes }) => sum + bytes, 0);
    const share = (all.rows[0]?.bytes ?? 0) / known / runs;
    return { log: new Map(rows.map(({ name, bytes }) => [name, bytes * share])) };
  };
  return { read, writtenBy, close: () => client.end() };
}
