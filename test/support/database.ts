/**
 * Databases for tests: each is a clone of a template that is migrated once per test run. Import it in a test
 * file, create one in `beforeAll`, drop it in `afterAll`; after a failed test it is kept and named instead.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterEach, inject } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';

const template = 'capstan_template';
const templateLock = 4_027_113;

let hasFailed = false;
afterEach(({ task }) => {
  hasFailed ||= task.result?.state === 'fail';
});

export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  readonly drop: () => Promise<void>;
}

const withServer = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: inject('databaseUrl') });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

const databaseUrl = (name: string): string => {
  const url = new URL(inject('databaseUrl'));
  url.pathname = `/${name}`;
  return url.href;
};

/** Under its final name only when it is migrated. */
const createTemplate = async (client: pg.Client): Promise<void> => {
  const draft = `${template}_draft`;
  await client.query(`drop database if exists ${draft}`);
  await client.query(`create database ${draft}`);
  await migrate(databaseUrl(draft));
  await client.query(`alter database ${draft} rename to ${template}`);
};

const ensureTemplate = async (client: pg.Client): Promise<void> => {
  await client.query('select pg_advisory_lock($1)', [templateLock]);
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [template]);
    if (rowCount === 0) await createTemplate(client);
  } finally {
    await client.query('select pg_advisory_unlock($1)', [templateLock]);
  }
};

const dropDatabase = async (name: string): Promise<void> => {
  if (hasFailed)
    console.error(`a test failed; its database is kept until the server ends: ${databaseUrl(name)}`);
  else await withServer((client) => client.query(`drop database if exists ${name} with (force)`));
};

export const createTestDatabase = async (): Promise<TestDatabase> => {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await withServer(async (client) => {
    await ensureTemplate(client);
    await client.query(`create database ${name} template ${template} strategy file_copy`);
  });
  return { url: databaseUrl(name), name, drop: () => dropDatabase(name) };
};
