import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/use-cases/routing/call.ts';

/**
 * Maps the `Idempotency-Key` that an instance received to the key of the attempt: `<run>.<step>.<item>.<revision>` for
 * a step's.
 * @param where selects attempts, such as those at one endpoint; default: all
 */
export async function readAttemptKeys(
  db: Db,
  where: { readonly endpoint?: string } = {},
): Promise<ReadonlyMap<string, string>> {
  const keys: string[] = await db('attempt').where(where).distinct().pluck('key');
  return new Map(keys.map((key) => [toOpaqueKey(key), key]));
}
