import type { Db } from '../connect.ts';
import { toJsonb } from '../jsonb.ts';
import { openSteps } from './step.ts';

/** Writes how far the call of a step or of one of its items has come: a line in the run's log, none after its end. */
export async function insertProgressNote(
  db: Db,
  { run_id, step_id, item }: { readonly run_id: string; readonly step_id: string; readonly item: number },
  data: { readonly progress: number; readonly message?: string },
): Promise<void> {
  await db.raw(
    `insert into event (run_id, type, step_id, item, data)
     select run_id, 'step.progress', step_id, nullif(item, 0), ?::jsonb from step
     where run_id = ? and step_id = ? and item = ? and state in ${openSteps}`,
    [toJsonb(data), run_id, step_id, item],
  );
}
