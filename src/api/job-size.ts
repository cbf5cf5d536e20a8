import type { JsonObject } from '../contracts/primitives.ts';
import { AppError } from '../errors/app-error.ts';

/** A body may be as large as a definition; a job in it has the size of one that is sent by itself. */
export function findJobFault(job: JsonObject | undefined, limitBytes: number): AppError | null {
  const bytes = job === undefined ? 0 : Buffer.byteLength(JSON.stringify(job));
  if (bytes <= limitBytes) return null;
  return new AppError('job_invalid', `the job has ${bytes} bytes; allowed are ${limitBytes}`);
}
