import { v4, v7 } from 'uuid';

const prefixes = {
  project: 'prj',
  job: 'job',
  run: 'run',
  instance: 'ins',
  attempt: 'att',
  decision: 'dec',
} as const;

/** `run_0198c2a4-…`: a prefix that says what it is, and a UUIDv7, so that ids sort by time. */
export const newId = (kind: keyof typeof prefixes): string => `${prefixes[kind]}_${v7()}`;

/** Proves ownership of an attempt; never shown. */
export const newToken = (): string => v4();
