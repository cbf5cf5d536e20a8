/** How instances stand: those whose row has changed, and those that have more or fewer calls than before. */
import type { StreamFrame } from '../../contracts/stream.ts';
import type { Db } from '../../db/connect.ts';
import { countHeldCalls, listChangedInstances } from '../../db/instance/instance-list.ts';
import { toInstance } from '../registry/registry-listing.ts';

export type HeldCalls = ReadonlyMap<string, number>;

export async function compareInstances(
  db: Db,
  horizon: string,
  held: HeldCalls,
): Promise<{ readonly frames: readonly StreamFrame[]; readonly held: HeldCalls }> {
  const now = await countHeldCalls(db);
  const ids = new Set([...now.keys(), ...held.keys()]);
  const other = [...ids].filter((id) => now.get(id) !== held.get(id));
  const rows = await listChangedInstances(db, horizon, other);
  return { frames: rows.map((row) => ({ kind: 'instance', data: toInstance(row) })), held: now };
}
