/** What a replay takes from the machine: statements of the database, and processor time of servers and Postgres. */
import pg from 'pg';
import { readProcessorTime } from '../engine/processor-time.ts';

export interface Effort {
  /** Statements that calls send: claims, ends and pieces. */
  readonly statements: number;
  /** Processor time of all servers, ms. */
  readonly serversMs: number;
  readonly postgresMs: number;
}

export interface Meter {
  start(): Promise<() => Promise<Effort>>;
}

/** Postgres loads it when it starts. */
export const countingStatements = { shared_preload_libraries: 'pg_stat_statements' };

/** By these functions calls write. */
const functions = ['settle_and_claim', 'grow_holds', 'record_calls', 'lease_slots'];

async function countStatements(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ calls: number }>(
    `select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements
     where toplevel and query ~ $1 and dbid = (select oid from pg_database where datname = current_database())`,
    [functions.map((name) => `\\m${name}\\(`).join('|')],
  );
  return rows[0]?.calls ?? 0;
}

/** @param processes ids of the servers and of Postgres, which bears its own name */
export async function createMeter(
  databaseUrl: string,
  processes: () => ReadonlyMap<string, number>,
): Promise<Meter & { close(): Promise<void> }> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query('create extension if not exists pg_stat_statements');
  const read = async () => ({
    statements: await countStatements(client),
    times: readProcessorTime(processes()),
  });
  return {
    start: async () => {
      const before = await read();
      return async () => {
        const after = await read();
        const spent = [...after.times].map(
          ([part, ms]) => [part, Math.max(0, ms - (before.times.get(part) ?? 0))] as const,
        );
        const sum = (isCounted: (part: string) => boolean): number =>
          spent.reduce((total, [part, ms]) => (isCounted(part) ? total + ms : total), 0);
        return {
          statements: after.statements - before.statements,
          serversMs: sum((part) => part.startsWith('server')),
          postgresMs: sum((part) => part === 'Postgres'),
        };
      };
    },
    close: () => client.end(),
  };
}
