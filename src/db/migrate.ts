/**
 * Migrates a database to the newest schema that this process knows, forward only, and reads its schema version without
 * writing. Tables change by migrations, each once; functions are created again when their texts differ
 * (sql/functions.ts). A session advisory lock lets many processes start in parallel; inside it, knex's own lock row,
 * which a killed migrator leaves behind, is freed.
 *
 * A process also starts with a newer schema, so that a rolling update and its rollback work. It ignores what it does
 * not know, and leaves the newer functions alone, unless a migration has raised the floor above its version
 * (`schema_floor`).
 */

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { connectDatabase, type Db } from './connect.ts';
import { holdLock } from './locks.ts';
import { addParts } from './partitions.ts';
import { type Adoption, adoptCluster } from './recovery.ts';
import {
  createFunctions,
  createTriggerFunctions,
  type FunctionSet,
  listStaleFunctions,
  readFunctions,
} from './sql/functions.ts';

interface Migration {
  /** Begins with the migration's number. */
  readonly name: string;
  readonly up: (db: Knex) => Promise<void>;
  /** Runs outside of one transaction: migrations/gentle-steps.ts. */
  readonly isPiecewise?: boolean;
}

/** @param name of a file of migrations/ that is SQL alone */
function runFile(name: string): Migration {
  const file = new URL(`migrations/${name}.sql`, import.meta.url);
  return { name, up: (db) => db.raw(readFileSync(file, 'utf8').replaceAll('?', '\\?')) };
}

const migrations: readonly Migration[] = [runFile('0001-tables')];

/** In the order of application. */
const migrationNames: readonly string[] = migrations.map(({ name }) => name);

function readOwnFunctions(): FunctionSet {
  return readFunctions(Math.max(...migrationNames.map((name) => Number.parseInt(name, 10))));
}

/** The table in which knex keeps the applied migrations. */
const migrationTable = 'schema_migration';

const source: Knex.MigrationSource<Migration> = {
  getMigrations: async () => [...migrations],
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({
    up: migration.up,
    config: { transaction: migration.isPiecewise !== true },
    down: async () => {
      throw new Error('migrations go forward only');
    },
  }),
};

/**
 * We poll for the lock: a concurrent index build waits for every open statement, also for one that waits for a lock.
 */
const tryMs = 100;

/** Holds the lock on a dedicated connection while `work` uses the pool. */
async function withLock<Result>(db: Db, work: () => Promise<Result>): Promise<Result> {
  let lock = await holdLock(db, 'migration');
  while (lock === null) {
    await sleep(tryMs);
    lock = await holdLock(db, 'migration');
  }
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

/**
 * @param known the newest schema that this process knows
 * @throws Error if the database requires a newer process
 */
async function checkFloor(db: Db, known: number): Promise<void> {
  if (!(await db.schema.hasTable('schema_floor'))) return;
  const { rows } = await db.raw<{ rows: [{ floor: number }] }>('select migration as floor from schema_floor');
  const [{ floor }] = rows;
  if (floor <= known) return;
  throw new Error(
    `the schema of the database needs a process that knows migration ${floor}, and this one knows migrations up to ${known}: start a newer version of Capstan`,
  );
}

/**
 * @param url of an existing database; its schema `public` receives the tables
 * @returns the changes that were due because the database comes from another cluster; null: it does not
 * @throws Error if the database's schema is too new for this process
 */
export async function migrate(url: string): Promise<Adoption | null> {
  const functions = readOwnFunctions();
  const db = connectDatabase(url, 3, 0);
  try {
    return await withLock(db, async () => {
      await checkFloor(db, functions.schema);
      const config = {
        migrationSource: source,
        tableName: migrationTable,
        disableMigrationsListValidation: true, // later migrations may have been applied
      };
      await db.migrate.forceFreeMigrationsLock(config);
      await createTriggerFunctions(db, functions);
      await db.migrate.latest(config);
      await createFunctions(db, functions);
      const adoption = await adoptCluster(db);
      await addParts(db);
      return adoption;
    });
  } finally {
    await db.destroy();
  }
}

// The schema version of a database, read without writing.

export interface SchemaState {
  readonly applied: readonly string[];
  /** Migrations that `migrate` would apply, in this order. */
  readonly pending: readonly string[];
  /** Migrations that a newer version has applied and this one does not know. */
  readonly newer: readonly string[];
  /** Files of functions that `migrate` would create. */
  readonly functions: readonly string[];
}

/** @throws Error if the database requires a newer version */
export async function readSchemaState(url: string): Promise<SchemaState> {
  const functions = readOwnFunctions();
  const db = connectDatabase(url, 2, 0);
  try {
    await checkFloor(db, functions.schema);
    const hasTable = await db.schema.hasTable(migrationTable);
    const found: string[] = hasTable ? await db(migrationTable).orderBy('id').pluck('name') : [];
    return {
      applied: migrationNames.filter((name) => found.includes(name)),
      pending: migrationNames.filter((name) => !found.includes(name)),
      newer: found.filter((name) => !migrationNames.includes(name)),
      functions: await listStaleFunctions(db, functions),
    };
  } finally {
    await db.destroy();
  }
}
