import { randomUUID } from 'node:crypto';
import { v7 } from 'uuid';
import { leastId } from '../db/partitions.ts';

const prefixes = {
  project: 'prj',
  job: 'job',
  run: 'run',
  batch: 'bat',
  instance: 'ins',
  attempt: 'att',
  decision: 'dec',
  erasure: 'ers',
  escalation: 'esc',
  skill: 'skl',
  review: 'rev',
  schedule: 'sch',
  backfill: 'bkf',
  gap: 'gap',
  webhook: 'whk',
  hook: 'hok',
  session: 'ssn',
  delivery: 'dlv',
  received: 'rcv',
  event: 'evt',
  call: 'call',
} as const;

/** Created for every call, and no list is ordered by them: they need not grow within a millisecond. */
const frequent: ReadonlySet<keyof typeof prefixes> = new Set(['attempt', 'decision', 'call']);

let quickMs = 0;
/** The beginning of ids that are created at `quickMs`. */
let quickStart = '';

/** A UUIDv7 from Node's pool of random UUIDs, which costs a fraction of drawing random bytes. */
function quickV7(): string {
  const nowMs = Date.now();
  if (nowMs !== quickMs) {
    const time = nowMs.toString(16).padStart(12, '0');
    quickMs = nowMs;
    quickStart = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }
  return quickStart + randomUUID().slice(15);
}

/** `run_0198c2a4-…`: a prefix that names the kind, and a UUIDv7, so that ids sort by time. */
export function newId(kind: keyof typeof prefixes): string {
  return `${prefixes[kind]}_${frequent.has(kind) ? quickV7() : v7()}`;
}

/** Whether the id was created for one call, so that it names nothing else. */
export function isCallId(id: string): boolean {
  return id.startsWith(`${prefixes.call}_`);
}

/** The largest difference between the clocks that create ids and the database's. */
const skewMs = 3_600_000;

function idAt(kind: keyof typeof prefixes, ms: number): string {
  return leastId(prefixes[kind], new Date(ms));
}

/** Ids created from `since` to `until` lie between these two, and a few more do. */
export function boundsOfIds(
  kind: keyof typeof prefixes,
  since: Date,
  until: Date,
): readonly [from: string, to: string] {
  return [idAt(kind, since.getTime() - skewMs), idAt(kind, until.getTime() + skewMs)];
}

/** When the id was created; null for another kind of text. */
export function madeAt(id: string): Date | null {
  const time = /^[a-z]+_([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(id);
  return time === null ? null : new Date(Number.parseInt(`${time[1]}${time[2]}`, 16));
}

/** Every attempt has one decision, whose id is the attempt's with another prefix. */
export function decisionIdOf(attemptId: string): string {
  return `${prefixes.decision}${attemptId.slice(prefixes.attempt.length)}`;
}
export function attemptIdOf(decisionId: string): string {
  return decisionId.replace(/^dec_/, 'att_');
}

/** Proves that a process owns an attempt, a key or slots; never shown. */
export function newToken(): string {
  return randomUUID();
}
