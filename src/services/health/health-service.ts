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

const databaseMs = 1_500;
const temporalMs = 500;

export function createHealthService(db: Db, workflows: Pick<RunWorkflows, 'isReachable'>) {
  return {
    isReady: async (): Promise<Readiness> => {
      const [database, temporal] = await Promise.all([
        db
          .raw('select 1')
          .timeout(databaseMs)
          .then(
            () => true,
            () => false,
          ),
        Promise.race([workflows.isReachable(), sleep(temporalMs, false)]),
      ]);
      const name = (isUp: boolean): string => (isUp ? 'ok' : 'does not answer');
      return {
        ready: database,
        detail: { database: name(database), temporal: name(temporal) },
      };
    },
  };
}

export type HealthService = ReturnType<typeof createHealthService>;
