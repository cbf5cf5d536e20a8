/**
 * Whether this process can serve. The database is enough, since requests to Temporal are stored in rows and delivered
 * when Temporal is back. Temporal's state is a detail and is not waited for: a proxy or orchestrator removes slow
 * servers, and all servers would be slow at the same time.
 */

import { within } from '@capstan/core/pacing';
import type { RunWorkflows } from '../clients/temporal/run-workflows.ts';
import type { Db } from '../db/connect.ts';

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, or the fault, by part. */
  readonly detail: Record<string, string>;
}

export interface HealthQuestions {
  readonly askDatabase: () => Promise<boolean>;
  readonly askTemporal: () => Promise<boolean>;
}

interface AskedParts {
  /**
   * A connection for the health check alone. On a shared pool the check would queue behind requests: a proxy would
   * remove a server that is only busy, its requests would go to the next server, and soon none would be left.
   */
  readonly healthDb: Db;
  readonly workflows: Pick<RunWorkflows, 'isReachable'>;
}

/** A database that takes longer for `select 1` counts as away; also the statement timeout of `healthDb`. */
export const databaseMs = 1_500;
const temporalMs = 500;
/** Each part gets at most one check in this time, however often `/readyz` is called. */
const askEveryMs = 1_000;

/** @returns checks, or returns the result of a check that is open or began less than `askEveryMs` ago */
function createSharedQuestion(ask: () => Promise<boolean>, now: () => number): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined;
  let askedAt = 0;
  let isOpen = false;
  return () => {
    if (answer !== undefined && (isOpen || now() - askedAt < askEveryMs)) return answer;
    isOpen = true;
    askedAt = now();
    answer = ask()
      .catch(() => false)
      .finally(() => {
        isOpen = false;
      });
    return answer;
  };
}

function name(isUp: boolean): string {
  return isUp ? 'ok' : 'does not answer';
}

/** @param now milliseconds of a monotonic clock */
export function createHealthQuestions(
  { healthDb, workflows }: AskedParts,
  now: () => number,
): HealthQuestions {
  return {
    askDatabase: createSharedQuestion(() => healthDb.raw('select 1').then(() => true), now),
    askTemporal: createSharedQuestion(() => workflows.isReachable(), now),
  };
}

export async function readReadiness({ health }: { readonly health: HealthQuestions }): Promise<Readiness> {
  const [database, temporal] = await Promise.all([
    within(health.askDatabase(), databaseMs, () => false),
    within(health.askTemporal(), temporalMs, () => false),
  ]);
  return { ready: database, detail: { database: name(database), temporal: name(temporal) } };
}
