/**
 * Migrates a database to the newest schema that this process knows, forward only, and reads its schema version without
 * writing. Migrations are imported statically, so that sources and compiled output behave alike. A session advisory
 * lock lets many processes start at the same time; inside it, knex's own lock row, which a killed migrator leaves
 * behind, is freed.
 *
 * A process also starts with a newer schema, so that a rolling update and its rollback work. It ignores what it does
 * not know, unless a migration has raised the floor above its version (`schemaFloorTable`, sql/database.sql.ts).
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { connectDatabase, type Db } from './connect.ts';
import { holdLock } from './locks.ts';
import { createSchema } from './migrations/0001-create-schema.ts';
import { countItems } from './migrations/0002-count-items.ts';
import { repairDecisions } from './migrations/0003-repair-decisions.ts';
import { costByInput } from './migrations/0004-cost-by-input.ts';
import { scopeBudgets } from './migrations/0005-scope-budgets.ts';
import { addModelAliases } from './migrations/0006-model-aliases.ts';
import { leaseSlotsOfInstances } from './migrations/0007-slot-leases.ts';
import { addSecrets } from './migrations/0008-secrets.ts';
import { drainInstances } from './migrations/0009-drain-instances.ts';
import { cheapenClaims } from './migrations/0010-cheapen-claims.ts';
import { watchSchedules } from './migrations/0011-watch-schedules.ts';
import { continueRuns } from './migrations/0012-continue-runs.ts';
import { queueCalls } from './migrations/0013-queue-calls.ts';
import { watchRuns } from './migrations/0014-watch-runs.ts';
import { reserveDeclaredPrices } from './migrations/0015-reserve-declared-prices.ts';
import { storeCallers } from './migrations/0016-store-callers.ts';
import { shareInstances } from './migrations/0018-share-instances.ts';
import { addParts } from './partitions.ts';
import { type Adoption, adoptCluster } from './recovery.ts';

interface Migration {
  /** Begins with the migration's number. */
  readonly name: string;
  readonly up: (db: Knex) => Promise<void>;
  /** Runs outside of one transaction: migrations/gentle-steps.ts. */
  readonly isPiecewise?: boolean;
}

const migrations: readonly Migration[] = [
  createSchema,
  countItems,
  repairDecisions,
  costByInput,
  scopeBudgets,
  addModelAliases,
  leaseSlotsOfInstances,
  addSecrets,
  drainInstances,
  cheapenClaims,
  watchSchedules,
  continueRuns,
  queueCalls,
  watchRuns,
  reserveDeclaredPrices,
  storeCallers,
  shareInstances,
];

/** In the order of application. */
const migrationNames: readonly string[] = migrations.map(({ name }) => name);
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

/** @throws Error if the database requires a newer process */
async function checkFloor(db: Db): Promise<void> {
  if (!(await db.schema.hasTable('schema_floor'))) return;
  const { rows } = await db.raw<{ rows: [{ floor: number }] }>('select migration as floor from schema_floor');
  const [{ floor }] = rows;
  const known = Math.max(...migrationNames.map((name) => Number.parseInt(name, 10)));
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
  const db = connectDatabase(url, 3, 0);
  try {
    return await withLock(db, async () => {
      await checkFloor(db);
      const config = {
        migrationSource: source,
        tableName: migrationTable,
        disableMigrationsListValidation: true, // later migrations may have been applied
      };
      await db.migrate.forceFreeMigrationsLock(config);
      await db.migrate.latest(config);
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
}

/** @throws Error if the database requires a newer version */
export async function readSchemaState(url: string): Promise<SchemaState> {
  const db = connectDatabase(url, 2, 0);
  try {
    await checkFloor(db);
    const hasTable = await db.schema.hasTable(migrationTable);
    const found: string[] = hasTable ? await db(migrationTable).orderBy('id').pluck('name') : [];
    return {
      applied: migrationNames.filter((name) => found.includes(name)),
      pending: migrationNames.filter((name) => !found.includes(name)),
      newer: found.filter((name) => !migrationNames.includes(name)),
    };
  } finally {
    await db.destroy();
  }
}
