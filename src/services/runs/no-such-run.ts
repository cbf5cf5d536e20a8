/** A run that is not there; of one that was made long ago it is said why that may be. */
import { AppError } from '../../errors/app-error.ts';
import { madeAt } from '../ids.ts';

const dayMs = 86_400_000;
/** No run is deleted sooner. */
const leastDays = 7;

export function noSuchRun(runId: string, now = Date.now()): AppError {
  const made = madeAt(runId);
  const days = made === null ? 0 : Math.floor((now - made.getTime()) / dayMs);
  const why = `; its id is ${days} days old, and runs are deleted some time after their end (RUN_RETENTION_DAYS)`;
  return new AppError('not_found', `there is no run ${runId}${days > leastDays ? why : ''}`);
}
