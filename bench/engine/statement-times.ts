/** What Postgres executes, from its own log: it writes the duration of every statement there while it is asked to. */
import { readFileSync, statSync } from 'node:fs';
import pg from 'pg';

export interface StatementTimes {
  readonly count: number;
  readonly ms: number;
}

async function configure(databaseUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(statement);
    await client.query('select pg_reload_conf()');
  } finally {
    await client.end();
  }
}

const duration = /LOG: {2}duration: ([\d.]+) ms {2}(\w+) ?[^:]*: ([^\n]*)/;

function summarize(log: string): ReadonlyMap<string, StatementTimes> {
  const times = new Map<string, StatementTimes>();
  for (const entry of log.split(/^(?=\d{4}-\d\d-\d\d )/m)) {
    const [, ms, kind, first] = duration.exec(entry) ?? [];
    if (ms === undefined || first === undefined) continue;
    const name = entry.slice(entry.indexOf(first)).replaceAll(/\s+/g, ' ').slice(0, 90);
    const { count, ms: before } = times.get(name) ?? { count: 0, ms: 0 };
    times.set(name, {
      count: count + (kind === 'execute' || kind === 'statement' ? 1 : 0),
      ms: before + Number(ms),
    });
  }
  return times;
}

/** @param logFile of Postgres @returns count and duration of each statement meanwhile, by its first characters */
export async function watchStatements(
  databaseUrl: string,
  logFile: string,
  work: () => Promise<void>,
): Promise<ReadonlyMap<string, StatementTimes>> {
  await configure(databaseUrl, 'alter system set log_min_duration_statement = 0');
  const from = statSync(logFile).size;
  try {
    await work();
  } finally {
    await configure(databaseUrl, 'alter system reset log_min_duration_statement');
  }
  return summarize(readFileSync(logFile).subarray(from).toString());
}
