/**
 * Whose files a value names, in texts and in keys of objects, as a whole or in passing: what an instance makes of
 * a list, of a template, of `MEDIA://` or of a path that no store takes is not known here.
 */
import type { Json } from '../contracts/primitives.ts';
import { extendPointer } from './json/values.ts';

export interface MediaMention {
  readonly reference: string;
  /** JSON Pointer into the value, of the first mention. Of a key: to what stands under it. */
  readonly pointer: string;
}

/** A text that begins so is a reference, however it goes on. */
const asWhole = /^\s*media:\/\/([^/]*)/i;
/** In the middle of a text an id ends where a sentence, a list or a quotation goes on; an expression is part of it. */
const inPassing = /media:\/\/([^/\s"'`<>()[\]{},;|\\]*(?:\{\{)?)/gi;
const shown = 200;

/** Whether a text names a file, as a whole or in passing. */
export function mentionsMedia(text: string): boolean {
  return /media:\/\//i.test(text);
}

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
    collectText(value, pointer, found);
  } else if (typeof value === 'object' && value !== null) {
    const isList = Array.isArray(value);
    for (const [key, child] of Object.entries(value)) {
      const isNamed = !isList && mentionsMedia(key);
      if (!isNamed && !mayMention(child)) continue;
      const below = extendPointer(pointer, key);
      if (isNamed) collectText(key, below, found);
      collect(child, below, found);
    }
  }
}

function collectText(text: string, pointer: string, found: Map<string, MediaMention>): void {
  if (!mentionsMedia(text)) return;
  const note = (jobId: string, at: number): void => {
    if (!found.has(jobId)) found.set(jobId, { reference: text.slice(at, at + shown), pointer });
  };
  const whole = asWhole.exec(text)?.[1];
  if (whole !== undefined) note(whole, 0);
  let isFirst = whole !== undefined;
  for (const match of text.matchAll(inPassing)) {
    const [, jobId = ''] = match;
    // The word `media://` by itself names nothing.
    if (!isFirst && jobId !== '') note(jobId, match.index);
    isFirst = false;
  }
}

/** A pointer is made only for what needs one. */
function mayMention(value: Json): boolean {
  return typeof value === 'string' ? mentionsMedia(value) : typeof value === 'object' && value !== null;
}

/** Where a caller says the destination of what a capability writes: the value at this key, however deep it stands. */
export const outputPathKey = 'output_path';
