/** Runs by what started them. */
import type { StepKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';

/** That an execution of a step has started. */
export async function findSubRun(
  db: Db,
  { run_id, step_id, item, revision }: StepKey,
): Promise<string | undefined> {
  const { rows } = await db.raw<{ rows: { run_id: string }[] }>(
    `select run_id from run where parent_run_id = ? and parent_step_id = ? and parent_item = ?
       and parent_revision = ?`,
    [run_id, step_id, item, revision],
  );
  return rows[0]?.run_id;
}

/** The run that this one repeats. */
export async function findRepeated(db: Db, runId: string): Promise<string | undefined> {
  const row = await db('run').where({ run_id: runId }).first('rerun_of');
  return row?.rerun_of ?? undefined;
}
