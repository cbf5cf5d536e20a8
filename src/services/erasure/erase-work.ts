/**
 * What was going on in a project: ended first, then forgotten by Temporal, then deleted (E3). Each answers whether it is
 * through.
 */
import { eraseAttempts, findLatePlace, pageAttempts } from '../../db/erasure/erased-attempts.ts';
import { stopWork } from '../../db/erasure/erased-rows.ts';
import { type ErasedRun, eraseRuns, listErasableRuns, listRunsToEnd } from '../../db/erasure/erased-runs.ts';
import { eraseSchedule, listEndedSchedules } from '../../db/erasure/erased-schedules.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import { count, type ErasurePass, filterOf } from './erasure-pass.ts';

const rowsAtOnce = 1_000;
const runsAtOnce = 200;
/** Each may have thousands of steps. */
const runsOfTransaction = 10;
const laddersAtOnce = 200;
const attemptsAtOnce = 5_000;

export async function endWork({
  db,
  erasure: { project_id },
  isStopping,
}: Pick<ErasurePass, 'db' | 'erasure' | 'isStopping'>): Promise<void> {
  await stopWork(db, project_id);
  const order = { reason: 'the project is erased', mode: 'terminate' } as const;
  for (;;) {
    const runs = await listRunsToEnd(db, project_id, rowsAtOnce);
    if (runs.length === 0) return;
    for (const run_id of runs) {
      if (isStopping()) return;
      await requestCancel(db, { project_id, run_id }, order);
    }
  }
}

export async function eraseSchedules(pass: ErasurePass): Promise<boolean> {
  const { db, schedules, workflows, erasure } = pass;
  let isThrough = true;
  for (const schedule of await listEndedSchedules(db, erasure.project_id)) {
    if (pass.isOver()) return false;
    const isGone = await eraseSchedule(db, schedule, async ({ workflow_id }) => {
      await schedules.remove({ workflow_id });
      return workflows.eraseSchedule(workflow_id);
    });
    if (isGone) await count(pass, { schedule: 1 });
    else isThrough = false;
  }
  return isThrough;
}

async function isForgotten(
  { workflows }: ErasurePass,
  { schedule_start, ...run }: ErasedRun,
): Promise<boolean> {
  const isStartGone = schedule_start === null || (await workflows.eraseStart(schedule_start));
  return (await workflows.erase(run)) && isStartGone;
}

/** Temporal takes a moment to delete: what it has not deleted yet is left for the next round. */
export async function eraseEndedRuns(pass: ErasurePass): Promise<boolean> {
  const { db, workflows, erasure } = pass;
  const { project_id } = erasure;
  while (!pass.isOver()) {
    const runs = await listErasableRuns(db, project_id, runsAtOnce);
    const going = (await filterOf(runs, (run) => isForgotten(pass, run))).map(({ run_id }) => run_id);
    if (going.length === 0) break;
    for (let at = 0; at < going.length; at += runsOfTransaction) {
      const some = going.slice(at, at + runsOfTransaction);
      await count(pass, await db.transaction((trx) => eraseRuns(trx, erasure, some)));
    }
  }
  if ((await db('run').where({ project_id }).first('run_id')) !== undefined) return false;
  return workflows.eraseProject(project_id);
}

export async function eraseLadders(pass: ErasurePass): Promise<boolean> {
  const { db, workflows, erasure } = pass;
  while (!pass.isOver()) {
    const ids: string[] = await db('escalation')
      .where({ project_id: erasure.project_id })
      .orderBy('escalation_id')
      .limit(laddersAtOnce)
      .pluck('escalation_id');
    if (ids.length === 0) return true;
    const going = await filterOf(ids, (id) => workflows.eraseLadder(id));
    if (going.length === 0) return false;
    await count(pass, { escalation: await db('escalation').whereIn('escalation_id', going).delete() });
  }
  return false;
}

/** Those that no run has made. */
export async function eraseCalls(pass: ErasurePass): Promise<boolean> {
  const { db, erasure, quietMs } = pass;
  const { project_id } = erasure;
  while (!pass.isOver()) {
    const { own, place, is_blocked } = await pageAttempts(db, {
      project_id,
      quietMs,
      after: pass.attemptsAfter,
      limit: attemptsAtOnce,
    });
    const attempt = await db.transaction((trx) => eraseAttempts(trx, erasure, own));
    pass.attemptsAfter = place ?? pass.attemptsAfter;
    await count(pass, { attempt });
    if (is_blocked) return false;
    if (place === null) return true;
  }
  return false;
}

/** Before the project itself: what came late is looked at again. */
export async function findLateCalls(pass: ErasurePass): Promise<boolean> {
  const place = await findLatePlace(pass.db, pass.erasure);
  if (place === null) return true;
  pass.attemptsAfter = place;
  await count(pass, {});
  return false;
}
