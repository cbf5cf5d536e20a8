import type { CancelRunRequest } from '../../core/workflow-payloads/scheduled-input.ts';
import type { Db } from '../../db/connect.ts';
import { requestCancel } from '../../db/run/run-control.ts';

const reason = 'its schedule asked it to stop';

/** Asks; the server delivers it. A run that has ended stays as it is. */
export function createCancelScheduledRun(db: Db) {
  return async (run: CancelRunRequest): Promise<void> => {
    await requestCancel(db, run, { reason, mode: 'graceful' });
  };
}

export type CancelScheduledRun = ReturnType<typeof createCancelScheduledRun>;
