import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/services/routing/call.ts';

/**
 * What an instance was sent as `Idempotency-Key` → the key of the attempt: `<run>.<step>.<item>.<revision>` of a step's.
 * @param where of which attempts, such as those at one endpoint; default: of all
 */
export async function readAttemptKeys(
  db: Db,
  where: { readonly endpoint?: string } = {},
): Promise<ReadonlyMap<string, string>> {
  const keys: string[] = await db('attempt').where(where).distinct().pluck('key');
  return new Map(keys.map((key) => [toOpaqueKey(key), key]));
}
