import type { Db } from '../connect.ts';
import { toJsonb } from '../jsonb.ts';

/** How far the call of a step or of one of its items has come: a line in the run's log and nothing else. */
export async function insertProgressNote(
  db: Db,
  { run_id, step_id, item }: { readonly run_id: string; readonly step_id: string; readonly item: number },
  data: { readonly progress: number; readonly message?: string },
): Promise<void> {
  await db.raw(
    `insert into event (run_id, type, step_id, item, data) values (?, 'step.progress', ?, nullif(?::int, 0), ?)`,
    [run_id, step_id, item, toJsonb(data)],
  );
}
