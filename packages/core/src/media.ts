/**
 * Finds the jobs whose files a value refers to, in texts and in object keys, as a whole value or inside a text. How an
 * instance reads a list, a template, `MEDIA://` or an invalid path is unknown here.
 */
import type { Json } from './contracts/primitives.ts';
import { extendPointer } from './json/values.ts';

export interface MediaMention {
  readonly reference: string;
  /** JSON Pointer into the value, of the first mention. For a key, it points to the value under it. */
  readonly pointer: string;
}

/** A text that begins like this is a reference, whatever follows. */
const asWhole = /^\s*media:\/\/([^/]*)/i;
/** Inside a text, an id ends where the sentence, list or quotation continues; an expression is part of the id. */
const inPassing = /media:\/\/([^/\s"'`<>()[\]{},;|\\]*(?:\{\{)?)/gi;
const shown = 200;

/** Whether a text contains a file reference, as a whole or inside it. */
export function mentionsMedia(text: string): boolean {
  return /media:\/\//i.test(text);
}

/** The first mention of each job, by the job's id as written. */
export function findMediaJobs(value: Json): ReadonlyMap<string, MediaMention> {
  const found = new Map<string, MediaMention>();
  collect(value, '', found);
  return found;
}

/** The first mention of each job in a template, without jobs that an expression names. */
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
    // The bare word `media://` names nothing.
    if (!isFirst && jobId !== '') note(jobId, match.index);
    isFirst = false;
  }
}

/** Pointers are made only for values that need one. */
function mayMention(value: Json): boolean {
  return typeof value === 'string' ? mentionsMedia(value) : typeof value === 'object' && value !== null;
}

/** The key whose value, at any depth, is the path that a capability writes to. */
export const outputPathKey = 'output_path';
