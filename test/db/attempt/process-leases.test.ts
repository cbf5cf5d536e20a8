/** Leases by the token of a process, and the thread that renews them while the process does not turn. */
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { createProcessLeases } from '../../../src/db/attempt/process-leases.ts';
import { holdKey, takeOverKey } from '../../../src/db/idempotency.ts';
import { newToken } from '../../../src/parts/ids.ts';
import { createFreezeWatch } from '../../../src/processes/freeze-watch.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anInstance, aProject, aRun, claimAttempt } from '../../support/factories.ts';
import { waitFor } from '../../support/wait.ts';

const { db, url } = useDatabase();
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** An open attempt whose lease ends now. */
async function anAttempt(token: string): Promise<string> {
  const claim = aClaim(await aRun(db), await anInstance(db), { token, lease_ms: 1 });
  await claimAttempt(db, claim);
  return claim.attempt_id;
}

async function isHeld(attempt_id: string): Promise<boolean> {
  return (await db('attempt').where({ attempt_id }).whereRaw('lease_until > clock_timestamp()')).length === 1;
}

/** Does not turn, as a process that computes. */
function freeze(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('the leases of a process', () => {
  it('are those of its open attempts, in open runs', async () => {
    const token = newToken();
    const [own, foreign, ended] = [
      await anAttempt(token),
      await anAttempt(newToken()),
      await anAttempt(token),
    ];
    await db('run')
      .whereIn('run_id', db('attempt').where({ attempt_id: ended }).select('run_id'))
      .update({ state: 'succeeded', finished_at: new Date() });
    const leases = createProcessLeases(url, token, 60_000);
    ends.push(leases.close);
    expect(await leases.renew()).toBe(1);
    expect(await Promise.all([own, foreign, ended].map(isHeld))).toEqual([true, false, false]);
    await leases.close();
    expect(await leases.renew()).toBe(1);
  });

  it('include the keys that it holds, with or without an attempt, and no others', async () => {
    const { project_id } = await aProject(db);
    const hold = (key: string, holder: string) => ({ project_id, request: 'POST /v1/x', key, holder });
    const [own, lost, left] = [hold('a', 'me'), hold('b', 'me'), hold('c', 'me')];
    for (const one of [own, hold('b', 'another'), left]) await holdKey(db, one, Buffer.alloc(32));
    await db('idempotency').update({ created_at: db.raw("clock_timestamp() - interval '11 seconds'") });
    const leases = createProcessLeases(url, newToken(), 60_000);
    ends.push(leases.close);
    expect(await leases.renew([own, lost])).toBe(0);
    const taken = [own, lost, left].map((one) => takeOverKey(db, { ...one, holder: 'new' }, 'none'));
    expect(await Promise.all(taken)).toEqual([false, true, true]);
  });

  it('wait for no transaction that ends one of them', async () => {
    const token = newToken();
    const [locked, other] = [await anAttempt(token), await anAttempt(token)];
    const leases = createProcessLeases(url, token, 60_000);
    ends.push(leases.close);
    await db.transaction(async (trx) => {
      await trx('attempt').where({ attempt_id: locked }).forUpdate();
      expect(await leases.renew()).toBe(1);
    });
    expect(await Promise.all([locked, other].map(isHeld))).toEqual([false, true]);
  });
});

describe('a process that does not turn', () => {
  async function aWatch(longestMs: number) {
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
    const token = newToken();
    const watch = createFreezeWatch({ databaseUrl: url, token, leaseMs: 60_000, longestMs, logger });
    ends.push(() => watch.close());
    await waitFor('the thread to look', async () => {
      freeze(400);
      return watch.hasThread();
    });
    return { watch, token, lines };
  }

  it('keeps its leases by its thread, and reports how long it was away', async () => {
    const { watch, token, lines } = await aWatch(60_000);
    const attempt = await anAttempt(token);
    const foreign = await anAttempt(newToken());
    await waitFor('a freeze that leaves the thread time enough', async () => {
      freeze(4_000);
      expect(watch.isCatchingUp(performance.now())).toBe(true);
      return (await isHeld(attempt)) && lines.some((line) => line.includes('"leases_renewed":1'));
    });
    expect(await isHeld(foreign)).toBe(false);
  });

  it('keeps a key from before it was reserved, though no attempt has begun', async () => {
    const { watch } = await aWatch(60_000);
    const { project_id } = await aProject(db);
    const held = { project_id, request: 'POST /v1/x', key: 'k', holder: 'me' };
    const end = watch.keepKey(held);
    await holdKey(db, held, Buffer.alloc(32));
    await db('idempotency').update({ created_at: db.raw("clock_timestamp() - interval '11 seconds'") });
    await waitFor('a freeze that leaves the thread time enough', async () => {
      freeze(4_000);
      return db('idempotency').whereRaw("created_at > clock_timestamp() - interval '5 seconds'").first();
    });
    expect(await takeOverKey(db, { ...held, holder: 'another' }, 'none')).toBe(false);
    end();
    await db('idempotency').update({ created_at: db.raw("clock_timestamp() - interval '11 seconds'") });
    freeze(4_000);
    expect(await takeOverKey(db, { ...held, holder: 'another' }, 'none')).toBe(true);
  });

  it('loses them after the longest time that is allowed', async () => {
    const { token } = await aWatch(600);
    const attempt = await anAttempt(token);
    freeze(2_500);
    expect(await isHeld(attempt)).toBe(false);
  });
});
