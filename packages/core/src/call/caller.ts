/**
 * Whose call it is. Every routed call names a run or a key, so no way to an instance can leave its payer out.
 *
 * O1 A call of a run belongs to the key and the labels in the run's row, also one that a ladder makes for its step. The
 * names and the token rate of the key do not limit it: the right to start runs includes their calls. O2 Any other call
 * belongs to a key, with the user and the labels of the request. Budgets and costs find it by `scopes`. O3 Such a key
 * calls only the names that it may call, and only while it has tokens. The use of the call is counted when it ends,
 * whatever the way it came and whatever its end (core/call/used-tokens.ts). O4 Work that outlives its request stores
 * the key with it, and so keeps the rights under which it was accepted.
 */
import type { CallOnBudget } from '../contracts/decision.ts';

/** A run, or a step of one. */
export interface CallingRun {
  readonly run_id: string;
  /** Its pipeline, and key and labels of the run at the top. Default: those of its row hold. */
  readonly scopes?: readonly string[];
}

/** The tokens or requests that a key has in a minute. */
export interface KeyRate {
  readonly key_id: string;
  readonly per_minute: number;
}

export interface CallingKey {
  /** The key, or the person. */
  readonly key_id: string;
  /** Key, user and labels: `key:ID`, `user:anna`, `label:team=ads`. */
  readonly scopes: readonly string[];
  /** The names that it may call: `model.fast`, `model.*`; null: all. */
  readonly names: readonly string[] | null;
  /** Of the key, and of the keys above it. */
  readonly token_rates: readonly KeyRate[];
  /** The end of its calls whose budgets have no more room; null: that of the project. */
  readonly onBudget: CallOnBudget | null;
}

export type CallCaller = CallingRun | CallingKey;

export function isRun(caller: CallCaller): caller is CallingRun {
  return 'run_id' in caller;
}

export function runOf(caller: CallCaller): string | null {
  return isRun(caller) ? caller.run_id : null;
}

/** Undefined: those of the run's row hold. */
export function scopesOf({ scopes }: CallCaller): readonly string[] | undefined {
  return scopes;
}

/** @param pattern a name, or the beginning of names followed by `*` */
export function coversName(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

export function mayCallName({ names }: Pick<CallingKey, 'names'>, name: string): boolean {
  return names === null || names.some((pattern) => coversName(pattern, name));
}

/** Why the key may not call the name. */
export function describeBeyond({ key_id, names }: CallingKey, name: string): string {
  const allowed = (names ?? []).map((pattern) => `capability:call:${pattern}`).join(', ');
  return `${key_id} may not call ${name}, only by ${allowed}`;
}

/** A key that makes calls, in the project that pays for them. */
export interface ProjectKey extends CallingKey {
  readonly project_id: string;
}
