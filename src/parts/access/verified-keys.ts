/** The holders of keys and sessions that this process has verified lately. */

import { hash } from 'node:crypto';
import type { KeyScope } from '@capstan/core/contracts/access';
import type { CallOnBudget } from '@capstan/core/contracts/decision';
import { LRUCache } from 'lru-cache';
import type { HolderRates } from './key-rates.ts';

/** The sender of a request: a key or a person, with its rights and projects. */
export interface KeyHolder {
  /** The id of the key or of the person; audit log and rows name the actor by it. */
  readonly key_id: string;
  /** All scopes of a person, over all projects; `selectProject` selects those that count. */
  readonly scopes: ReadonlySet<KeyScope>;
  /** At least one; the first is the default. */
  readonly projects: readonly string[];
  /** Absent: a key, whose scopes are the same everywhere. */
  readonly byProject?: ReadonlyMap<string, ReadonlySet<KeyScope>>;
  /** Absent: none. */
  readonly rates?: HolderRates;
  /** The end of its direct calls without room. Absent or null: that of the project. */
  readonly onBudget?: CallOnBudget | null;
  /** The proof in the request; absent: the key's present secret. */
  readonly shown?: 'former secret' | 'session';
}

/** Holders by the digest of their key or secret. */
export type VerifiedKeys = LRUCache<string, KeyHolder>;

/** @param trustMs how long a verified key is used without a query; 0 queries always */
export function createVerifiedKeys(trustMs = 5_000): VerifiedKeys {
  return new LRUCache({ max: 10_000, ttl: trustMs, ttlResolution: 0 });
}

export function placeOf(text: string): string {
  return hash('sha256', text, 'base64');
}

export function forgetText(verifiedKeys: VerifiedKeys, text: string): void {
  verifiedKeys.delete(placeOf(text));
}

export function forgetKeys(verifiedKeys: VerifiedKeys, keyIds: readonly string[]): void {
  for (const [place, { key_id }] of verifiedKeys.entries())
    if (keyIds.includes(key_id)) verifiedKeys.delete(place);
}
