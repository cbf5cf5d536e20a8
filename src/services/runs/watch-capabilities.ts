/** Wakes steps that wait for a capability which now has an instance that could take a call. */
import type { Db } from '../../db/connect.ts';
import { wakeForCapabilities } from '../../db/step/step-wait.ts';

/** The others are woken the next time. */
const atOnce = 1_000;

/** @returns how many it woke */
export function createWatchCapabilities(db: Db) {
  return (): Promise<number> => wakeForCapabilities(db, atOnce);
}
