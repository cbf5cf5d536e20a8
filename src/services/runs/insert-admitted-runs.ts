/**
 * Writes prepared runs, in the transaction of whoever takes them. A run whose concurrency key has no room waits its
 * turn or is refused, as its definition says; decisions on a key are made one at a time. A run that another one with
 * its key has started, at whatever depth, is part of that one's turn: they would wait for each other.
 */
import type { Db } from '../../db/connect.ts';
import { insertRuns, type NewRun } from '../../db/run/run.ts';
import { countTurns, hasKeyAbove, lockTurn } from '../../db/run/run-admission.ts';
import { AppError } from '../../errors/app-error.ts';
import { storeDefinition } from '../pipelines/store-definition.ts';
import type { PreparedRun } from './prepare-run.ts';

/** Its row as it was written, or why there is none. */
export type PlacedRun = NewRun | AppError;

interface Turns {
  admitted: number;
  waiting: number;
}

function refuseTurn({ concurrency_key, concurrency_limit }: NewRun, { admitted, waiting }: Turns): AppError {
  return new AppError(
    'concurrency_limit',
    `${admitted} runs with the key ${JSON.stringify(concurrency_key)} are under way and ${waiting} wait; allowed are ${concurrency_limit}`,
    { retryAfterS: 1 },
  );
}

/** Counts it in. */
function takeTurn({ row, known }: PreparedRun, turns: Turns): PlacedRun {
  const hasRoom = turns.waiting === 0 && turns.admitted < (row.concurrency_limit ?? 0);
  if (!hasRoom && known.definition.concurrency?.on_limit === 'reject') return refuseTurn(row, turns);
  if (hasRoom) turns.admitted += 1;
  else turns.waiting += 1;
  return { ...row, is_admitted: hasRoom };
}

async function joinTurn(trx: Db, run: PreparedRun): Promise<PreparedRun> {
  const { concurrency_key, concurrency_limit, ...row } = run.row;
  if (row.parent_run_id === undefined || concurrency_key === undefined) return run;
  return (await hasKeyAbove(trx, row.parent_run_id, concurrency_key)) ? { ...run, row } : run;
}

/** By key; locked until the transaction ends. */
async function lockTurns(
  trx: Db,
  projectId: string,
  prepared: readonly PreparedRun[],
): Promise<ReadonlyMap<string, Turns>> {
  const keys = new Set(
    prepared.flatMap(({ row: { concurrency_key: key } }) => (key === undefined ? [] : [key])),
  );
  const turns = new Map<string, Turns>();
  for (const concurrency_key of [...keys].sort()) {
    const key = { project_id: projectId, concurrency_key };
    await lockTurn(trx, key);
    turns.set(concurrency_key, { ...(await countTurns(trx, key)) });
  }
  return turns;
}

function placeOne(run: PreparedRun, turns: ReadonlyMap<string, Turns>): PlacedRun {
  const counted = turns.get(run.row.concurrency_key ?? '');
  return run.row.concurrency_key === undefined || counted === undefined ? run.row : takeTurn(run, counted);
}

/**
 * @param runs of one project, in their order
 * @throws AppError `state_conflict` when a step, or a schedule at its time, has started a run before
 */
export async function placeRuns(
  trx: Db,
  projectId: string,
  runs: readonly PreparedRun[],
): Promise<readonly PlacedRun[]> {
  const prepared: PreparedRun[] = [];
  for (const run of runs) prepared.push(await joinTurn(trx, run));
  const turns = await lockTurns(trx, projectId, prepared);
  const placed = prepared.map((run) => placeOne(run, turns));
  const taken = prepared.filter((_, index) => !(placed[index] instanceof AppError));
  const unstored = new Map(
    taken.flatMap(({ isStored, known }) => (isStored ? [] : [[known.digest, known.definition] as const])),
  );
  for (const definition of unstored.values()) await storeDefinition(trx, definition);
  const jobs = taken.flatMap(({ job: { isNew, job_id, body } }) =>
    isNew ? [{ job_id, project_id: projectId, body: body ?? {} }] : [],
  );
  const rows = placed.filter((row): row is NewRun => !(row instanceof AppError));
  if (rows.length > 0 && (await insertRuns(trx, rows, jobs)) < rows.length) {
    throw new AppError('state_conflict', 'the run that was to be started has been started before');
  }
  return placed;
}

/** Of a run by itself. @throws AppError `concurrency_limit`, `state_conflict` */
export async function placeRun(trx: Db, prepared: PreparedRun): Promise<NewRun> {
  const [placed] = await placeRuns(trx, prepared.row.project_id, [prepared]);
  if (placed === undefined || placed instanceof AppError) throw placed;
  return placed;
}
