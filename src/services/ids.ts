import { randomUUID } from 'node:crypto';
import { v7 } from 'uuid';
import { leastId } from '../db/partitions.ts';

const prefixes = {
  project: 'prj',
  job: 'job',
  run: 'run',
  instance: 'ins',
  attempt: 'att',
  decision: 'dec',
  erasure: 'ers',
  escalation: 'esc',
  skill: 'skl',
  review: 'rev',
  schedule: 'sch',
  webhook: 'whk',
  session: 'ssn',
  delivery: 'dlv',
  call: 'call',
} as const;

/** Made for every call, and no list is ordered by them: they need not grow within a millisecond. */
const frequent: ReadonlySet<keyof typeof prefixes> = new Set(['attempt', 'decision', 'call']);

/** A UUIDv7 out of Node's stock of random UUIDs, which costs a fraction of drawing random bytes. */
function quickV7(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** `run_0198c2a4-…`: a prefix that says what it is, and a UUIDv7, so that ids sort by time. */
export function newId(kind: keyof typeof prefixes): string {
  return `${prefixes[kind]}_${frequent.has(kind) ? quickV7() : v7()}`;
}

/** How far the clocks that make ids may be from the database's. */
const skewMs = 3_600_000;

function idAt(kind: keyof typeof prefixes, ms: number): string {
  return leastId(prefixes[kind], new Date(ms));
}

/** Between these two are the ids of everything that was made from `since` to `until`, and a few more. */
export function boundsOfIds(
  kind: keyof typeof prefixes,
  since: Date,
  until: Date,
): readonly [from: string, to: string] {
  return [idAt(kind, since.getTime() - skewMs), idAt(kind, until.getTime() + skewMs)];
}

/** When it was made; null for what is no such id. */
export function madeAt(id: string): Date | null {
  const time = /^[a-z]+_([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(id);
  return time === null ? null : new Date(Number.parseInt(`${time[1]}${time[2]}`, 16));
}

/** Every attempt has one decision, whose id is the attempt's with another prefix. */
export function decisionIdOf(attemptId: string): string {
  return attemptId.replace(/^att_/, 'dec_');
}
export function attemptIdOf(decisionId: string): string {
  return decisionId.replace(/^dec_/, 'att_');
}

/** Proves ownership of an attempt; never shown. */
export function newToken(): string {
  return randomUUID();
}
