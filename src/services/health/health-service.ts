/**
 * Whether this process can serve: with its database it can, since what is asked of Temporal is kept in rows and delivered
 * when Temporal is back. Each part has two seconds to answer.
 */
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or what is wrong, by part. */
  readonly detail: Record<string, string>;
}

export function createHealthService(db: Db, workflows: Pick<RunWorkflows, 'isReachable'>) {
  return {
    isReady: async (): Promise<Readiness> => {
      const [database, temporal] = await Promise.all([
        db
          .raw('select 1')
          .timeout(2_000)
          .then(
            () => true,
            () => false,
          ),
        workflows.isReachable(),
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
