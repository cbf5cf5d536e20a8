/**
 * Every advisory lock that the processes take, by name. The number of a lock is a hash of its name, so two locks differ
 * as long as their names do, and the compiler refuses a second one of the same name. No other file takes such a lock;
 * `npm run check` verifies it. The functions of the database lock the keys of calls, in the order that
 * `sql/claims.sql` states.
 */
import { discardConnection } from '../library-internals.ts';
import type { Db } from './connect.ts';

/** What holders of a lock do, one at a time. A lock of many is one for each subject. */
const locks = {
  migration: 'change the schema',
  maintenance: 'lead maintenance',
  setup: 'make the default project and its key',
  partitions: 'add and drop partitions',
  keys: 'change keys: one that is created during the revocation of its creator would survive otherwise',
  wakes: 'clear wakes, together; wake steps, alone, so that no clearing has locked one of them',
  budget_drift: 'correct budgets',
  open_runs: 'add many runs to a project; taken before the keys of calls',
  admission: 'admit runs of a project with one concurrency key',
  call_line: 'give places in a line to calls of a run; taken after their steps',
  schedule: 'deliver a schedule to Temporal',
  instances: 'count the instances of a project',
  host: 'join a host of a project; drain it, so that no instance joins meanwhile. Taken before instances',
  capability_spec: 'compare the specs of a version of a capability',
  outside_event: 'give and keep events of a name and key; begin to wait for one. Taken before steps',
  repairs: 'decide about repairs of a capability of a project',
};

type LockName = keyof typeof locks;

const number = 'hashtextextended(?, 0)';

function nameOf(lock: LockName, subject: readonly string[]): string {
  return [lock, ...subject].join(' ');
}

/** Waits for the lock, and holds it until the transaction ends. */
export async function takeLock(trx: Db, lock: LockName, ...subject: readonly string[]): Promise<void> {
  await trx.raw(`select pg_advisory_xact_lock(${number})`, [nameOf(lock, subject)]);
}

/** Holds the lock until the transaction ends. @returns false if another transaction holds it */
export async function tryLock(trx: Db, lock: LockName, ...subject: readonly string[]): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: [{ held: boolean }] }>(
    `select pg_try_advisory_xact_lock(${number}) as held`,
    [nameOf(lock, subject)],
  );
  return rows[0].held;
}

/** A condition for a statement: it is true once the transaction shares the lock. */
export function sharing(lock: LockName): string {
  return `(select pg_advisory_xact_lock_shared(hashtextextended('${lock}', 0))) is not null`;
}

// A lock on a dedicated connection: it ends with the process.

export interface LockHold {
  /** False if the connection broke, and the lock with it. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

interface LockConnection {
  query(text: string, values?: readonly unknown[]): Promise<{ rows: { held: boolean }[] }>;
}

/** @returns null if another process holds it */
export async function holdLock(db: Db, lock: LockName): Promise<LockHold | null> {
  const connection: LockConnection = await db.client.acquireConnection();
  const giveBack = (): Promise<void> => db.client.releaseConnection(connection);
  /** A failed connection may still hold the lock: the pool must close it, not lend it again. */
  const discard = async (error: unknown): Promise<never> => {
    discardConnection(connection, error);
    await giveBack();
    throw error;
  };
  const { rows } = await connection
    .query('select pg_try_advisory_lock(hashtextextended($1, 0)) as held', [lock])
    .catch((error: unknown) => discard(error));
  if (rows[0]?.held !== true) {
    await giveBack();
    return null;
  }
  return {
    isHeld: async () => {
      try {
        await connection.query('select 1');
        return true;
      } catch (error) {
        await discard(error).catch(() => undefined);
        return false;
      }
    },
    release: async () => {
      await connection
        .query('select pg_advisory_unlock(hashtextextended($1, 0))', [lock])
        .catch(() => undefined);
      await giveBack();
    },
  };
}
