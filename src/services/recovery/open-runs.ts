import type { Db } from '../../db/connect.ts';
import { listOpenRuns, type OpenRun } from '../../db/recovery/restored-state.ts';

const batch = 500;

/** All runs that have not ended, some at a time. */
export async function* pageOpenRuns(db: Db): AsyncGenerator<readonly OpenRun[], void, undefined> {
  let after = '';
  for (;;) {
    const runs = await listOpenRuns(db, after, batch);
    const last = runs.at(-1);
    if (last === undefined) return;
    yield runs;
    after = last.run_id;
  }
}
