/**
 * Whether this process can serve: with its database it can, since what is asked of Temporal is kept in rows and delivered
 * when Temporal is back. What Temporal says is a detail, and is not waited for: proxies and orchestrators leave out who
 * answers late, and all servers would be late at once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or what is wrong, by part. */
  readonly detail: Record<string, string>;
}

export interface HealthDependencies {
  /**
   * A connection for this alone. Among the others the question would stand in line behind requests: a server that is
   * only busy would be left out, its requests would go to the next, and soon there would be none.
   */
  readonly ownDb: Db;
  readonly workflows: Pick<RunWorkflows, 'isReachable'>;
}

/** A database that takes longer for `select 1` is away: the time of a statement of `ownDb` too. */
export const databaseMs = 1_500;
const temporalMs = 500;

function within(limitMs: number, asked: Promise<boolean>): Promise<boolean> {
  return Promise.race([asked, sleep(limitMs, false, { ref: false })]);
}

function isThere(db: Db): Promise<boolean> {
  return db.raw('select 1').then(
    () => true,
    () => false,
  );
}

function name(isUp: boolean): string {
  return isUp ? 'ok' : 'does not answer';
}

export function createHealthService({ ownDb, workflows }: HealthDependencies) {
  let asked: Promise<boolean> | undefined;
  /** Who asks meanwhile is given the same answer: however many ask, one connection is enough. */
  const askDatabase = (): Promise<boolean> => {
    asked ??= isThere(ownDb).finally(() => {
      asked = undefined;
    });
    return asked;
  };
  return {
    isReady: async (): Promise<Readiness> => {
      const [database, temporal] = await Promise.all([
        within(databaseMs, askDatabase()),
        within(temporalMs, workflows.isReachable()),
      ]);
      return { ready: database, detail: { database: name(database), temporal: name(temporal) } };
    },
  };
}

export type HealthService = ReturnType<typeof createHealthService>;
