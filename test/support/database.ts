/**
 * Databases for tests: each is a clone of a template that is migrated once per test run. After a failed test it is
 * kept and named instead of dropped.
 */

import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { parse } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { migrate } from '../../src/db/migrate.ts';
import { hasTestFailed } from './failures.ts';
import { placeOf } from './places.ts';

const template = 'capstan_template';
const templateLock = 4_027_113;

export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  readonly drop: () => Promise<void>;
}

/** For the maintenance of databases: connections are kept, because each costs as much as a clone. */
let server: pg.Pool | null = null;

function openServer(): pg.Pool {
  const pool = new pg.Pool({
    connectionString: placeOf('databaseUrl'),
    max: 3,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  return pool.on('error', () => undefined); // Postgres ends before this process
}

async function withServer<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  server ??= openServer();
  const client = await server.connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
}

function databaseUrl(name: string): string {
  const url = new URL(placeOf('databaseUrl'));
  url.pathname = `/${name}`;
  return url.href;
}

/** It gets its final name only after the migration. */
async function createTemplate(client: pg.PoolClient): Promise<void> {
  const draft = `${template}_draft`;
  await client.query(`drop database if exists ${draft}`);
  await client.query(`create database ${draft}`);
  await migrate(databaseUrl(draft));
  await client.query(`alter database ${draft} rename to ${template}`);
}

async function ensureTemplate(client: pg.PoolClient): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [templateLock]);
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [template]);
    if (rowCount === 0) await createTemplate(client);
  } finally {
    await client.query('select pg_advisory_unlock($1)', [templateLock]);
  }
}

async function dropDatabase(name: string): Promise<void> {
  if (hasTestFailed())
    console.error(`a test failed; its database is kept until the server ends: ${databaseUrl(name)}`);
  else await withServer((client) => client.query(`drop database if exists ${name} with (force)`));
}

function newName(): string {
  return `test_${randomBytes(6).toString('hex')}`;
}

function cloneTemplate(name: string): Promise<void> {
  return withServer(async (client) => {
    await ensureTemplate(client);
    await client.query(`create database ${name} template ${template} strategy file_copy`);
  });
}

/** The caller drops it. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const name = newName();
  await cloneTemplate(name);
  return { url: databaseUrl(name), name, drop: () => dropDatabase(name) };
}

/** A database from before the first test of the file or block until after the last, with a pool. */
export function useDatabase(poolSize = 4): { readonly db: Db; readonly url: string } {
  const name = newName();
  const url = databaseUrl(name);
  const db = connectDatabase(url, poolSize); // connects at the first query
  beforeAll(() => cloneTemplate(name));
  afterAll(async () => {
    await db.destroy();
    await dropDatabase(name);
  });
  return { db, url };
}

/** Names of the migrations, by their files. */
export function migrationNames(): string[] {
  const files = readdirSync(new URL('../../src/db/migrations', import.meta.url));
  return files
    .filter((file) => /^\d{4}-/.test(file))
    .map((file) => parse(file).name)
    .sort();
}
