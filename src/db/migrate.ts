/**
 * Brings a database to the newest schema, forward only. Migrations are statically imported, so that sources and
 * compiled output behave alike. A session advisory lock lets many processes start at once; knex's own lock
 * row, which a killed migrator leaves behind, is freed inside it.
 */
import type { Knex } from 'knex';
import { connectDatabase, type Db } from './connect.ts';
import { createTables } from './migrations/0001-create-tables.ts';
import { createAttemptFunctions } from './migrations/0002-create-attempt-functions.ts';
import { addRegistryLife } from './migrations/0003-add-registry-life.ts';
import { addBudgetScopes } from './migrations/0004-add-budget-scopes.ts';
import { batchAttempts } from './migrations/0005-batch-attempts.ts';
import { moveBudgets } from './migrations/0006-move-budgets.ts';
import { moveBudgetsAtOnce } from './migrations/0007-move-budgets-at-once.ts';
import { claimInSets } from './migrations/0008-claim-in-sets.ts';
import { addEscalation } from './migrations/0009-add-escalation.ts';
import { completeTheEngine } from './migrations/0010-complete-the-engine.ts';
import { tellItems } from './migrations/0011-tell-items.ts';
import { chargeRunsAbove } from './migrations/0012-charge-runs-above.ts';
import { findTurns } from './migrations/0013-find-turns.ts';

interface Migration {
  readonly name: string;
  readonly up: (db: Knex) => Promise<void>;
}

const migrations: readonly Migration[] = [
  createTables,
  createAttemptFunctions,
  addRegistryLife,
  addBudgetScopes,
  batchAttempts,
  moveBudgets,
  moveBudgetsAtOnce,
  claimInSets,
  addEscalation,
  completeTheEngine,
  tellItems,
  chargeRunsAbove,
  findTurns,
];

const lockKey = 7_236_150_443;

const source: Knex.MigrationSource<Migration> = {
  getMigrations: async () => [...migrations],
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({
    up: migration.up,
    down: async () => {
      throw new Error('migrations go forward only');
    },
  }),
};

/** Holds the lock on a connection of its own while `work` uses the pool. */
async function withLock(db: Db, work: () => Promise<void>): Promise<void> {
  const connection = await db.client.acquireConnection();
  try {
    await connection.query('select pg_advisory_lock($1)', [lockKey]);
    await work();
  } finally {
    await connection.query('select pg_advisory_unlock($1)', [lockKey]).catch(() => undefined);
    await db.client.releaseConnection(connection);
  }
}

/** @param url database that exists; its schema `public` receives the tables */
export async function migrate(url: string): Promise<void> {
  const db = connectDatabase(url, 3, 0);
  try {
    await withLock(db, async () => {
      const config = { migrationSource: source, tableName: 'schema_migration' };
      await db.migrate.forceFreeMigrationsLock(config);
      await db.migrate.latest(config);
    });
  } finally {
    await db.destroy();
  }
}
