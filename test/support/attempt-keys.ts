import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/services/routing/opaque-key.ts';

/** What an instance was sent as `Idempotency-Key` → the key of the attempt: `<run>.<step>.<item>.<revision>` of a step's. */
export async function readAttemptKeys(db: Db): Promise<ReadonlyMap<string, string>> {
  const keys: string[] = await db('attempt').distinct().pluck('key');
  return new Map(keys.map((key) => [toOpaqueKey(key), key]));
}
