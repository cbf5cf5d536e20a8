/** Progress of a step's call in the log of its run: at most two lines a second, the last one always. */
import type { CallProgress } from '../../core/call/progress.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { insertProgressNote } from '../../db/step/step-progress-note.ts';

export interface CallProgressLog {
  readonly note: (progress: CallProgress) => void;
  /** The call has ended: what was not written yet is not written any more. */
  readonly stop: () => void;
}

const pauseMs = 500;

/** @param tell hears all of it */
export function createCallProgressLog(
  db: Db,
  key: StepKey,
  tell: (progress: CallProgress) => void = () => undefined,
): CallProgressLog {
  let waiting: CallProgress | null = null;
  let timer: NodeJS.Timeout | null = null;
  let isOver = false;
  const write = (): void => {
    timer = null;
    if (waiting === null) return;
    // A line that cannot be written is one of many; the call goes on.
    insertProgressNote(db, key, waiting).catch(() => undefined);
    waiting = null;
    timer = setTimeout(write, pauseMs).unref();
  };
  return {
    note: (progress) => {
      tell(progress);
      waiting = progress;
      if (timer === null && !isOver) write();
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
      isOver = true;
    },
  };
}
