/** A run that something else than a request asks for, at most once for its origin: written here, started by a server. */
import type { RunRequest } from '../../contracts/run.ts';
import type { RunOrigin } from '../../db/run/run.ts';
import { insertAdmittedRun } from './insert-admitted-runs.ts';
import { type PrepareDependencies, prepareRun, readRequest } from './prepare-run.ts';

/** @returns the run's id @throws AppError `state_conflict` when the origin has one already; else as a request */
export function createSubmitOriginatedRun(dependencies: PrepareDependencies) {
  return async (projectId: string, request: RunRequest, origin: RunOrigin): Promise<string> => {
    const order = await readRequest(dependencies, projectId, request);
    const prepared = await prepareRun(dependencies, projectId, { ...order, origin });
    const { db, mostOpenRuns } = dependencies;
    return (await db.transaction((trx) => insertAdmittedRun(trx, prepared, mostOpenRuns))).run_id;
  };
}
