import { expect, test } from 'vitest';
import type { Claim } from '../../../src/db/attempt/attempt.ts';
import { preventClaim } from '../../../src/db/attempt/attempt.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anInstance, aRun, claimAttempt } from '../../support/factories.ts';
import { untilLocked } from '../../support/locks.ts';

const { db } = useDatabase(3);

async function aPaidClaim(): Promise<Claim> {
  const instance = await anInstance(db, { cost_type: 'per_call', rate_usd: 1 });
  return aClaim(await aRun(db), instance, { step: null, key: newId('call'), reserved_nano: 5n });
}

async function reservedFor({ project_id }: Claim): Promise<string> {
  const budget = await db('budget').where('scope', `project:${project_id}`).first('reserved_nano');
  return budget?.reserved_nano ?? '0';
}

test('a claim that was prevented cannot be made any more, and holds nothing', async () => {
  const claim = await aPaidClaim();
  expect(await preventClaim(db, claim)).toBe(true);
  expect(await preventClaim(db, claim)).toBe(false);
  await expect(claimAttempt(db, claim)).rejects.toMatchObject({ code: '23505' });
  expect(await reservedFor(claim)).toBe('0');
  expect(await db('attempt').where({ key: claim.key })).toEqual([]);
});

test('a running claim is awaited, so that its return never comes first', async () => {
  const claim = await aPaidClaim();
  const trx = await db.transaction();
  await claimAttempt(trx, claim);
  let prevented: boolean | null = null;
  const preventing = preventClaim(db, claim).then((made) => {
    prevented = made;
  });
  await untilLocked(db);
  expect(prevented).toBe(null);
  await trx.commit();
  await preventing;
  expect(prevented).toBe(false);
  expect(await reservedFor(claim)).toBe('5');
});
