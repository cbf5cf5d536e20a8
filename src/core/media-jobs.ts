/**
 * Whose files a value names. A text is a reference when it begins like one, however it goes on: what an instance makes
 * of `MEDIA://` or of a path that no store takes is not known here.
 */
import type { Json } from '../contracts/primitives.ts';
import { extendPointer } from './json-pointer.ts';

export interface MediaMention {
  readonly reference: string;
  /** JSON Pointer into the value, of the first mention. */
  readonly pointer: string;
}

const start = /^\s*media:\/\/([^/]*)/i;
const shown = 200;

/** The first mention of each job, by the job's id as it is written. */
export function findMediaJobs(value: Json): ReadonlyMap<string, MediaMention> {
  const found = new Map<string, MediaMention>();
  collect(value, '', found);
  return found;
}

/** The same of a template: a job that an expression names is known when the expression is. */
export function findWrittenMediaJobs(template: Json): ReadonlyMap<string, MediaMention> {
  return new Map([...findMediaJobs(template)].filter(([jobId]) => !jobId.includes('{{')));
}

function collect(value: Json, pointer: string, found: Map<string, MediaMention>): void {
  if (typeof value === 'string') {
    const jobId = start.exec(value)?.[1];
    if (jobId === undefined || found.has(jobId)) return;
    found.set(jobId, { reference: value.slice(0, shown), pointer });
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value)) {
      if (mayMention(child)) collect(child, extendPointer(pointer, key), found);
    }
  }
}

/** A pointer is made only for what needs one. */
function mayMention(value: Json): boolean {
  return typeof value === 'string' ? start.test(value) : typeof value === 'object' && value !== null;
}
