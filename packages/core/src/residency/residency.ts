/**
 * What instances have loaded, and how long a call takes by it. Loading a model or a long prefix may take longer than the
 * call, so the part of an input that decides what must be loaded gives the call a key, by the capability's `affinity`.
 * Nothing here decides whether a call is allowed.
 * - W1: a key is resident where it was served last, or where the list of the instance has it: the keys that it has
 *   served or reported, the latest first, as many as it holds at once.
 * - W2: a key that was listed, and took the time of a load, is not trusted on that instance for an hour. Before a load
 *   was seen, its time shows nothing, unless it is twice that of a warm call.
 * - W3: a call takes the time of a warm call, and of a load where its key is not resident; behind others, their time too.
 * - W4: an instance with the key may be waited for as long as the wait is shorter than a load elsewhere (R3).
 * - W5: in a line, a call whose key is resident on a free instance passes others of its rank. The first of them gets a
 *   load now and then (keyed-line.ts): so no key starves.
 * - W6: the key by a text of the caller, in place of that of the capability, is a text of its project. Instances of
 *   other projects have a hash of both: their owners read no keys of callers, and two projects have no key in common.
 */

import { longestAffinityKey, mostResident, unreadableKey } from '../contracts/limits.ts';
import type { Json } from '../contracts/primitives.ts';
import { canonicalJson } from '../json/values.ts';
import type { InstanceSnapshot, Residency, RouteRequest } from '../routing/types.ts';

/** W2 */
export const distrustMs = 3_600_000;
/** The times of all keys together. */
export const anyKey = '';

/** Averages of the calls with one key in the fleet of a project, ms; null: none was seen. */
export interface LoadTimes {
  readonly warmMs: number | null;
  readonly coldMs: number | null;
}

/** The times that the calls of one capability have shown. */
export type LoadBook = (ownerProject: string, key: string) => LoadTimes | undefined;

/** The value of an `affinity` as a key; null: the call has none. Keys are stored and shown: others become their hash. */
export function toKey(value: Json | undefined): string | null {
  if (value === undefined || value === null || value === '') return null;
  const text = typeof value === 'object' ? canonicalJson(value) : String(value);
  return text.length <= longestAffinityKey && !unreadableKey.test(text) ? text : `#${hashText(text)}`;
}

/** 128 bits, not for secrets: equal prefixes need equal keys, in every process. */
function hashText(text: string): string {
  let [a, b, c, d] = [0x811c9dc5, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca77) ^ (a >>> 15);
    c = Math.imul(c ^ code, 0x9e3779b1) ^ (b >>> 13);
    d = Math.imul(d ^ code, 0xc2b2ae3d) ^ (c >>> 16);
  }
  return [a, b, c, d].map((part) => (part >>> 0).toString(16).padStart(8, '0')).join('');
}

/** Between the parts of a key by W6; no key has one. */
const partsEnd = '\n';

/** W6: of a call, for whichever instance it gets. @param projectId of the caller; null: it is unknown */
export function ownKey(projectId: string | null, key: string | null): string | null {
  if (projectId === null || key === null) return key;
  const ofProject = `${projectId}${partsEnd}${key}`;
  return `${ofProject}${partsEnd}#${hashText(ofProject)}`;
}

/** W6: it comes from the caller, so it counts on every instance. */
export function isOwnKey(key: string): boolean {
  return key.includes(partsEnd);
}

/** W6: the key of a call on an instance. */
export function keyAt(key: string, { owner_project }: Pick<InstanceSnapshot, 'owner_project'>): string {
  if (!isOwnKey(key)) return key;
  const [projectId, own, hash] = key.split(partsEnd) as [string, string, string];
  return projectId === owner_project ? own : hash;
}

/** What it may be on any instance. */
export function keysOf(key: string): readonly string[] {
  return isOwnKey(key) ? key.split(partsEnd).slice(1) : [key];
}

type HolderOfKeys = Pick<InstanceSnapshot, 'resident' | 'distrusted'>;

function isTrusted({ distrusted = {} }: HolderOfKeys, key: string, nowMs: number): boolean {
  return !Object.hasOwn(distrusted, key) || (distrusted[key] as number) <= nowMs;
}

/** W1. @returns null: it is not resident; else whether it was served last, or only listed */
function findKey(holder: HolderOfKeys, key: string, nowMs: number): 'last' | 'listed' | null {
  const { resident } = holder;
  if (resident == null || resident.length === 0) return null;
  if (resident[0] === key) return 'last';
  return resident.includes(key) && isTrusted(holder, key, nowMs) ? 'listed' : null;
}

/** The keys of both, without repetition. */
function mergeKeys(first: readonly string[], others: readonly string[], most: number): readonly string[] {
  return [...new Set([...first, ...others])].slice(0, most);
}

/** The list after a call with the key. @param most how many keys the instance holds at once */
export function serveKey(resident: readonly string[], key: string, most: number): readonly string[] {
  return resident[0] === key ? resident : mergeKeys([key], resident, most);
}

/**
 * The list after a report: keys that the instance has served, and still reports, stay in their order.
 * @param isBusy it has calls, so the key that it served last is being loaded
 */
export function reportKeys(
  resident: readonly string[],
  reported: readonly string[],
  isBusy: boolean,
): readonly string[] {
  const kept = resident.filter((key, at) => reported.includes(key) || (isBusy && at === 0));
  return mergeKeys(kept, reported, mostResident);
}

/** The least part of a cold call that is work. */
const leastWork = 0.1;

function loadOf(times: LoadTimes | undefined): number | null {
  if (times === undefined || times.warmMs === null || times.coldMs === null) return null;
  return Math.max(0, times.coldMs - times.warmMs);
}

function expectTimes(
  book: LoadBook,
  { owner_project = '' }: Pick<InstanceSnapshot, 'owner_project'>,
  { key, priorMs }: { readonly key: string; readonly priorMs: number },
): Pick<Residency, 'warmMs' | 'loadMs' | 'isLearnt'> {
  const own = book(owner_project, key);
  const all = book(owner_project, anyKey);
  const loadMs = loadOf(own) ?? loadOf(all) ?? 0;
  const coldMs = own?.coldMs ?? null;
  const rest = coldMs === null ? null : Math.max(coldMs - loadMs, leastWork * coldMs);
  return { warmMs: own?.warmMs ?? rest ?? all?.warmMs ?? priorMs, loadMs, isLearnt: own !== undefined };
}

/** Paces so near to one another count as equal: times of one key differ too. */
const nearPace = 1.25;

/** How much longer than others an instance takes. */
function paceOf({ pace }: Pick<InstanceSnapshot, 'pace'>): number {
  if (pace == null || (pace < nearPace && pace > 1 / nearPace)) return 1;
  return pace;
}

/** Expected time of a call that it has now: of the key that it served last. */
function currentMs(loads: LoadBook, instance: InstanceSnapshot, priorMs: number): number {
  const key = instance.resident?.[0];
  if (key === undefined) return instance.duration_ms ?? priorMs;
  return expectTimes(loads, instance, { key, priorMs }).warmMs;
}

/** A call that has taken longer than expected is expected to take half as long again. */
function leftOf({ busy_since_ms }: InstanceSnapshot, expectedMs: number, nowMs: number): number {
  const ranMs = busy_since_ms == null ? 0 : Math.max(0, nowMs - busy_since_ms);
  return ranMs < expectedMs ? expectedMs - ranMs : ranMs / 2;
}

export interface KeyedFleet {
  readonly instances: readonly InstanceSnapshot[];
  readonly priorMs: number;
  /** Absent: no instance declares an affinity. */
  readonly loads?: LoadBook | undefined;
}

/** The key of a call on an instance; null: it has none there. */
export type KeyOn = (instance: Pick<InstanceSnapshot, 'affinity'>) => string | null;

const nothingLearnt: LoadBook = () => undefined;

/** By instance; undefined: the call has no key on any. */
export function residencyOf(
  { instances, priorMs, loads = nothingLearnt }: KeyedFleet,
  keyOn: KeyOn,
  nowMs: number,
): RouteRequest['residency'] {
  let found: Map<string, Residency> | undefined;
  for (const instance of instances) {
    const ofCall = keyOn(instance);
    if (ofCall === null) continue;
    const key = keyAt(ofCall, instance);
    found ??= new Map();
    const place = findKey(instance, key, nowMs);
    const times = expectTimes(loads, instance, { key, priorMs });
    const pace = paceOf(instance);
    found.set(instance.instance_id, {
      key,
      isResident: place !== null,
      isListed: place === 'listed',
      warmMs: times.warmMs * pace,
      loadMs: times.loadMs * pace,
      pace,
      isLearnt: times.isLearnt,
      leftMs: instance.held === 0 ? 0 : leftOf(instance, currentMs(loads, instance, priorMs) * pace, nowMs),
      usedAtMs: instance.resident?.length ? (instance.last_call_ms ?? 0) : null,
    });
  }
  return found;
}

/** W3, with a free slot. */
export function ownMs({ isResident, warmMs, loadMs }: Residency): number {
  return isResident ? warmMs : warmMs + loadMs;
}

// What an ended call shows of these times.

export interface SeenTimes {
  /** Whether it is one of a warm call or of a cold one. */
  readonly isClear: boolean;
  /** It took the time of a load, whatever was expected. */
  readonly isCold: boolean;
  /** W2 */
  readonly isDistrusted: boolean;
  /** Its time for the averages: of a known key at most four times the average. */
  readonly durationMs: number;
  /** For the pace of its instance. */
  readonly ratio: number;
}

/** A load that is shorter than this part of a warm call looks like work. */
const leastLoad = 0.25;
/** Where no load was seen: so many warm calls look like one. */
const likeLoad = 2;
const mostRatio = 4;

/** What the time of a successful call shows. */
export function readTimes(
  { isResident, isListed, isLearnt, warmMs, loadMs, pace }: Residency,
  durationMs: number,
): SeenTimes {
  const isUnknown = loadMs === 0;
  const isLong = durationMs > (isUnknown ? likeLoad * warmMs : warmMs + loadMs / 2);
  const isDistrusted = isListed && isLong && (isUnknown || loadMs > leastLoad * warmMs);
  const isCold = !isResident || isDistrusted;
  const usualMs = Math.max(1, (isCold ? warmMs + loadMs : warmMs) / pace);
  const boundMs = isLearnt ? Math.min(durationMs, mostRatio * usualMs) : durationMs;
  const ratio = Math.min(mostRatio, Math.max(1 / mostRatio, durationMs / usualMs));
  return { isClear: !isListed || !isUnknown || isLong, isCold, isDistrusted, durationMs: boundMs, ratio };
}

/** Weights of a new call in the averages. */
export const timeWeight = 0.1;
export const paceWeight = 0.05;

/** Several calls folded, so that reports of other processes merge: new = kept × old + sum. */
export interface FoldedAverage {
  readonly kept: number;
  readonly sum: number;
  /** The first call, where there is no average yet. */
  readonly first: number;
}

export function foldValue(folded: FoldedAverage | undefined, value: number, weight: number): FoldedAverage {
  if (folded === undefined) return { kept: 1 - weight, sum: weight * value, first: value };
  const { kept, sum, first } = folded;
  return { kept: kept * (1 - weight), sum: sum * (1 - weight) + weight * value, first };
}

export function applyFolded(average: number | null, { kept, sum, first }: FoldedAverage): number {
  return kept * (average ?? first) + sum;
}
