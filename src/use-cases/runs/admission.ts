/**
 * Writes prepared runs, in the caller's transaction. A run whose concurrency key has no room waits to be admitted, is
 * refused, or replaces the oldest one, by its definition; decisions on a key are made one at a time. A descendant of a run with the same key counts
 * as part of it, because the two would wait for each other. Runs beyond the project's limit of open runs are refused,
 * the last ones first. A child run is never refused for that, because a run that has begun may continue.
 */

import { AppError } from '@capstan/core/errors/app-error';
import type { Db } from '../../db/connect.ts';
import { takeLock } from '../../db/locks.ts';
import { lockJobs } from '../../db/run/job.ts';
import { type InsertedRuns, insertRuns } from '../../db/run/run.ts';
import { cancelOldest, countAdmissions, hasKeyAbove, lockAdmission } from '../../db/run/run-admission.ts';
import type { NewRun } from '../../db/run/run-columns.ts';
import { storeDefinition } from '../pipelines/pipelines.ts';
import type { PreparedRun } from './preparation.ts';

/** The row as it was written, or the reason why there is none. */
export type AdmissionResult = NewRun | AppError;

export interface Intake {
  readonly project_id: string;
  /** The project's limit of open runs; null = none. */
  readonly mostOpen: number | null;
}

interface Admissions {
  admitted: number;
  waiting: number;
}

function refuseAdmission(
  { concurrency_key, concurrency_limit }: NewRun,
  { admitted, waiting }: Admissions,
): AppError {
  return new AppError(
    'concurrency_limit',
    `${admitted} runs with the key ${JSON.stringify(concurrency_key)} are open and ${waiting} are waiting; at most ${concurrency_limit} are allowed`,
    { retryAfterS: 1 },
  );
}

/** Decides on a run, and counts it. */
function admit({ row, known }: PreparedRun, admissions: Admissions): AdmissionResult {
  const hasRoom = admissions.waiting === 0 && admissions.admitted < (row.concurrency_limit ?? 0);
  if (!hasRoom && known.definition.concurrency?.on_limit === 'reject')
    return refuseAdmission(row, admissions);
  if (hasRoom) admissions.admitted += 1;
  else admissions.waiting += 1;
  return { ...row, is_admitted: hasRoom };
}

async function joinRunAbove(trx: Db, run: PreparedRun): Promise<PreparedRun> {
  const { concurrency_key, concurrency_limit, ...row } = run.row;
  if (row.parent_run_id === undefined || concurrency_key === undefined) return run;
  return (await hasKeyAbove(trx, row.parent_run_id, concurrency_key)) ? { ...run, row } : run;
}

/** Counts by key; the keys are locked until the transaction ends. */
async function lockAdmissions(
  trx: Db,
  projectId: string,
  prepared: readonly PreparedRun[],
): Promise<ReadonlyMap<string, Admissions>> {
  const keys = new Set(
    prepared.flatMap(({ row: { concurrency_key: key } }) => (key === undefined ? [] : [key])),
  );
  const admissions = new Map<string, Admissions>();
  for (const concurrency_key of [...keys].sort()) {
    const key = { project_id: projectId, concurrency_key };
    await lockAdmission(trx, key);
    admissions.set(concurrency_key, { ...(await countAdmissions(trx, key)) });
  }
  return admissions;
}

function admitOne(run: PreparedRun, admissions: ReadonlyMap<string, Admissions>): AdmissionResult {
  const counted = admissions.get(run.row.concurrency_key ?? '');
  return run.row.concurrency_key === undefined || counted === undefined ? run.row : admit(run, counted);
}

/** Runs end after minutes rather than seconds, and no answer knows when. */
const openRunsRetryS = 30;

/** @throws AppError `state_conflict` when a step, or a schedule at its time, has started a run before */
function findRefusals(
  rows: readonly NewRun[],
  { run_ids, open }: InsertedRuns,
  { mostOpen }: Intake,
): ReadonlyMap<string, AppError> {
  const left = rows.filter(({ run_id }) => !run_ids.has(run_id));
  if (left.length > 0 && (mostOpen === null || open + rows.length <= mostOpen)) {
    throw new AppError('state_conflict', 'the run was started before');
  }
  const message = `the project has ${open + run_ids.size} open runs; OPEN_RUNS_PER_PROJECT allows ${mostOpen}`;
  const refusal = new AppError('open_runs_limit', message, { retryAfterS: openRunsRetryS });
  return new Map(left.map(({ run_id }) => [run_id, refusal]));
}

/** Keeps the files that a run names: by a lock until the transaction ends, then because of the run. */
async function holdNeeded(
  trx: Db,
  projectId: string,
  runs: readonly PreparedRun[],
): Promise<ReadonlyMap<PreparedRun, AppError>> {
  const jobIds = new Set(runs.flatMap(({ needed }) => [...needed.keys()]));
  const refused = new Map<PreparedRun, AppError>();
  if (jobIds.size === 0) return refused;
  const held = await lockJobs(trx, projectId, [...jobIds]);
  for (const run of runs) {
    const lacking = [...run.needed].find(([jobId]) => !held.has(jobId));
    if (lacking !== undefined) refused.set(run, lacking[1]());
  }
  return refused;
}

/**
 * @param runs of one project, in their order
 * @throws AppError `state_conflict` when a step, or a schedule at its time, has started a run before
 */
export async function insertAdmittedRuns(
  trx: Db,
  intake: Intake,
  runs: readonly PreparedRun[],
): Promise<readonly AdmissionResult[]> {
  const { project_id: projectId, mostOpen } = intake;
  if (runs.length > 1) await takeLock(trx, 'open_runs', projectId);
  const lacking = await holdNeeded(trx, projectId, runs);
  const refused: (AppError | undefined)[] = runs.map((run) => lacking.get(run));
  const prepared: PreparedRun[] = [];
  for (const run of runs) prepared.push(await joinRunAbove(trx, run));
  const admissions = await lockAdmissions(
    trx,
    projectId,
    prepared.filter((_, index) => refused[index] === undefined),
  );
  const results = prepared.map((run, index) => refused[index] ?? admitOne(run, admissions));
  const taken = prepared.filter((_, index) => !(results[index] instanceof AppError));
  const unstored = new Map(
    taken.flatMap(({ isStored, known }) => (isStored ? [] : [[known.digest, known.definition] as const])),
  );
  for (const definition of unstored.values()) await storeDefinition(trx, definition);
  const jobs = taken.flatMap(({ job: { isNew, job_id, body } }) =>
    isNew ? [{ job_id, project_id: projectId, body }] : [],
  );
  const rows = results.filter((row): row is NewRun => !(row instanceof AppError));
  if (rows.length === 0) return results;
  const refusals = findRefusals(rows, await insertRuns(trx, { runs: rows, jobs, mostOpen }), intake);
  await replaceOldest(trx, projectId, taken);
  return results.map((row) => (row instanceof AppError ? row : (refusals.get(row.run_id) ?? row)));
}

/** Cancels the oldest runs of the keys that want so. */
async function replaceOldest(trx: Db, projectId: string, taken: readonly PreparedRun[]): Promise<void> {
  const limits = new Map<string, number>();
  for (const { row, known } of taken)
    if (row.concurrency_key !== undefined && known.definition.concurrency?.on_limit === 'cancel_oldest')
      limits.set(row.concurrency_key, row.concurrency_limit ?? 1);
  for (const [concurrency_key, kept] of limits)
    await cancelOldest(trx, { project_id: projectId, concurrency_key }, kept);
}

/** Writes one run by itself. @throws AppError `concurrency_limit`, `open_runs_limit`, `state_conflict` */
export async function insertAdmittedRun(
  trx: Db,
  prepared: PreparedRun,
  mostOpen: number | null,
): Promise<NewRun> {
  const intake = { project_id: prepared.row.project_id, mostOpen };
  const [results] = await insertAdmittedRuns(trx, intake, [prepared]);
  if (results === undefined || results instanceof AppError) throw results;
  return results;
}
