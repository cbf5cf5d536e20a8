import { randomInt, randomUUID } from 'node:crypto';
import { slotsToGrant } from '@capstan/core/routing/slot-leases';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loseExpiredAttempts } from '../../../src/db/attempt/attempt.ts';
import {
  deleteDeadLeases,
  type LeasedCall,
  leaseSlots,
  recordCalls,
  requestSlots,
} from '../../../src/db/attempt/slot-lease.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { findInstance, type InstanceColumns } from '../../../src/db/instance/instance.ts';
import { setDrain } from '../../../src/db/instance/instance-drain.ts';
import { pollInstances } from '../../../src/db/instance/instance-list.ts';
import { newId } from '../../../src/parts/ids.ts';
import { listBreaches, watchCommits } from '../../support/commit-watch.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anEnd, anInstance, aProject, claimAttempt, settleAttempt } from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';
import { runs } from '../../support/runs.ts';

/** Of each of four processes. A connection costs as much as many claims. */
const poolSize = isLong ? 8 : 4;
const lessees = isLong ? 64 : 32;
const { db, url } = useDatabase(poolSize);
const others = [1, 2, 3].map(() => connectDatabase(url, poolSize));
const pools = [db, ...others];
beforeAll(() => watchCommits(db));
afterAll(() => Promise.all(others.map((pool) => pool.destroy())));

const leaseMs = 30_000;
/** Of each lessee. */
const rounds = isLong ? 20 : 6;

function lease(
  instance: InstanceColumns,
  holder: string,
  slots: number,
  { inUse = 0, on = db }: { inUse?: number; on?: Db } = {},
): Promise<number> {
  return leaseSlots(on, { instanceId: instance.instance_id, holder, slots, inUse, leaseMs });
}

function aDirectClaim(instance: InstanceColumns, must_be_idle = false) {
  const run = { run_id: '', project_id: instance.owner_project };
  return aClaim(run, instance, { step: null, is_first: true, key: newId('call'), must_be_idle });
}

function aCall(instance: InstanceColumns, holder: string, isOpen: boolean): LeasedCall {
  const claim = aDirectClaim(instance);
  const now = performance.now();
  const ended = isOpen ? null : { end: anEnd(claim), atMs: now - 5 };
  return { holder, claim, beganAtMs: now - 65, ended };
}

function setConcurrency(instance: InstanceColumns, max_concurrency: number, on = db) {
  return on('instance').where({ instance_id: instance.instance_id }).update({ max_concurrency });
}

async function endLeases({ instance_id }: InstanceColumns, ago = '1 millisecond'): Promise<void> {
  await db.raw(`update slot_lease set expires_at = clock_timestamp() - ?::interval where instance_id = ?`, [
    ago,
    instance_id,
  ]);
}

async function heldSlots({ instance_id }: InstanceColumns): Promise<number> {
  return (await findInstance(db, instance_id))?.in_flight ?? 0;
}

describe('a lease', () => {
  test('is not given on a drained instance', async () => {
    const instance = await anInstance(db, { max_concurrency: 64 });
    await setDrain(db, instance.instance_id, { by: 'ana', reason: null, until: null });
    expect(await lease(instance, randomUUID(), 8)).toBe(0);
  });

  test('gets what the pure rule grants', async () => {
    const instance = await anInstance(db, { max_concurrency: 64 });
    const small = fc.nat({ max: 80 });
    await fc.assert(
      fc.asyncProperty(small, small, small, small, async (asked, inUse, declared, first) => {
        const [one, two] = [randomUUID(), randomUUID()];
        await setConcurrency(instance, 64);
        const taken = await lease(instance, one, first);
        const own = await lease(instance, two, inUse);
        await setConcurrency(instance, Math.max(1, declared));
        const granted = await lease(instance, two, asked, { inUse: own });
        expect(granted).toBe(
          slotsToGrant({ asked, inUse: own, declared: Math.max(1, declared), others: taken }),
        );
        await Promise.all([one, two].map((holder) => lease(instance, holder, 0)));
      }),
      { numRuns: runs(20) },
    );
  });

  test.each([
    ['fewer than eight slots', { max_concurrency: 7 }],
    ['a price', { max_concurrency: 64, cost_type: 'per_call', rate_usd: 1 } as const],
    ['a state other than up', { max_concurrency: 64, state: 'suspect' } as const],
    ['an open breaker', { max_concurrency: 64, breaker_until: new Date() }],
  ])('is refused for an instance with %s', async (_, fields) => {
    expect(await lease(await anInstance(db, fields), randomUUID(), 8)).toBe(0);
  });

  test('holds its slots against claims and idle-only claims, until it ends', async () => {
    const instance = await anInstance(db, { max_concurrency: 8 });
    expect(await lease(instance, randomUUID(), 8)).toBe(6);
    expect(await claimAttempt(db, aDirectClaim(instance, true))).toMatchObject({ outcome: 'full' });
    const outcomes = await Promise.all([1, 2, 3].map(() => claimAttempt(db, aDirectClaim(instance))));
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['claimed', 'claimed', 'full']);
    expect(await heldSlots(instance)).toBe(8);
    await endLeases(instance);
    expect(await claimAttempt(db, aDirectClaim(instance))).toMatchObject({ outcome: 'claimed' });
    expect(await heldSlots(instance)).toBe(3);
  });

  test('keeps the slots in use when fewer are declared or the instance is gone, and no more', async () => {
    const instance = await anInstance(db, { max_concurrency: 32 });
    const holder = randomUUID();
    expect(await lease(instance, holder, 20)).toBe(20);
    await setConcurrency(instance, 8);
    expect(await lease(instance, holder, 20, { inUse: 7 })).toBe(7);
    await db('instance').where({ instance_id: instance.instance_id }).update({ state: 'deregistered' });
    expect(await lease(instance, holder, 20, { inUse: 3 })).toBe(3);
    expect(await lease(instance, holder, 0)).toBe(0);
    expect(await heldSlots(instance)).toBe(0);
  });

  test('that has ended protects no slot in use', async () => {
    const instance = await anInstance(db, { max_concurrency: 8 });
    const [paused, next] = [randomUUID(), randomUUID()];
    expect(await lease(instance, paused, 6)).toBe(6);
    await endLeases(instance);
    expect(await lease(instance, next, 6)).toBe(6);
    expect(await lease(instance, paused, 6, { inUse: 6 })).toBe(0);
  });

  test('shows its holder that another waits, until it gives slots back', async () => {
    const instance = await anInstance(db, { max_concurrency: 8 });
    const [one, two] = [randomUUID(), randomUUID()];
    await lease(instance, one, 2);
    await lease(instance, two, 2);
    await requestSlots(db, instance.instance_id, two);
    const wanted = async (holder: string) => (await pollInstances(db, '0', holder)).slot_requests;
    expect([await wanted(one), await wanted(two)]).toEqual([[instance.instance_id], []]);
    await lease(instance, one, 2, { inUse: 2 });
    expect(await wanted(one)).toEqual([instance.instance_id]);
    await lease(instance, one, 1);
    expect(await wanted(one)).toEqual([]);
  });

  test('counts for every router but its holder', async () => {
    const instance = await anInstance(db, { max_concurrency: 16 });
    const holder = randomUUID();
    await lease(instance, holder, 5);
    await claimAttempt(db, aDirectClaim(instance));
    const held = async (by: string | null) => (await pollInstances(db, '0', by)).held[instance.instance_id];
    expect([await held(holder), await held(randomUUID()), await held(null)]).toEqual([1, 6, 6]);
  });

  test('of a dead process is deleted', async () => {
    const instance = await anInstance(db, { max_concurrency: 16 });
    await lease(instance, randomUUID(), 5);
    await endLeases(instance, '61 seconds');
    expect(await deleteDeadLeases(db)).toBeGreaterThan(0);
    expect(await db('slot_lease').where({ instance_id: instance.instance_id })).toEqual([]);
  });
});

test('lessees, claims and changes of concurrency never hold more than is declared', async () => {
  const instance = await anInstance(db, { max_concurrency: 100 });
  let isOver = false;
  const changes = (async () => {
    while (!isOver) await setConcurrency(instance, 1 + randomInt(200));
  })();
  const lessee = async (at: number): Promise<void> => {
    const on = pools[at % pools.length] as Db;
    const holder = randomUUID();
    let own = 0;
    for (let n = 0; n < rounds; n++) {
      const inUse = own === 0 ? 0 : randomInt(own + 1);
      own = await lease(instance, holder, randomInt(20), { inUse, on });
      expect(own).toBeGreaterThanOrEqual(inUse);
      const calls = Array.from({ length: Math.min(own, 2) }, () => aCall(instance, holder, true));
      if (calls.length > 0) expect(await recordCalls(on, calls)).toEqual(new Set());
      own -= calls.length;
      const claim = aDirectClaim(instance);
      const { outcome } = await claimAttempt(on, claim);
      const ended = [...calls.map((call) => call.claim), ...(outcome === 'claimed' ? [claim] : [])];
      for (const one of ended) await settleAttempt(on, anEnd(one));
    }
    await lease(instance, holder, 0, { on });
  };
  await Promise.all(Array.from({ length: lessees }, (_, at) => lessee(at)));
  isOver = true;
  await changes;
  expect(await heldSlots(instance)).toBe(0);
  expect(await listBreaches(db)).toEqual([]);
});

describe('a call on a leased slot', () => {
  test('is recorded as it ended, once, by the database’s clock', async () => {
    const instance = await anInstance(db, {
      max_concurrency: 16,
      owner_project: (await aProject(db)).project_id,
    });
    const call = aCall(instance, randomUUID(), false);
    const { claim } = call;
    for (const _ of [1, 2]) expect(await recordCalls(db, [call])).toEqual(new Set());
    const { rows } = await db.raw(
      `select to_jsonb(a) - array['lease_until', 'started_at', 'finished_at'] as attempt, c.decision, c.inputs,
         extract(epoch from a.finished_at - a.started_at)::float8 * 1000 as took,
         a.finished_at <= clock_timestamp() as is_past
       from attempt a join attempt_choice c using (attempt_id) where attempt_id = ?`,
      [claim.attempt_id],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0].attempt).toMatchObject({
      attempt_id: claim.attempt_id,
      project_id: instance.owner_project,
      key: claim.key,
      number: 1,
      endpoint: instance.endpoint,
      state: 'settled',
      ambiguity: 'answered',
      certainty: 'exact',
      settled_nano: 0,
      duration_ms: 12.5,
      cost_type: 'free',
      counted: false,
      has_failed: false,
    });
    expect(rows[0]).toMatchObject({ decision: claim.decision, inputs: claim.inputs, is_past: true });
    expect(rows[0].took).toBeCloseTo(60, 0);
  });

  test('takes its slot from the lease when it is open for long, and frees it as any attempt does', async () => {
    const instance = await anInstance(db, { max_concurrency: 16 });
    const holder = randomUUID();
    await lease(instance, holder, 4);
    const call = aCall(instance, holder, true);
    for (const _ of [1, 2])
      expect(await recordCalls(db, [call, aCall(instance, holder, false)])).toEqual(new Set());
    expect(await db('slot_lease').where({ holder }).select('slots')).toEqual([{ slots: 3 }]);
    expect(await heldSlots(instance)).toBe(4);
    expect(await settleAttempt(db, anEnd(call.claim))).toBe(true);
    expect(await heldSlots(instance)).toBe(3);
  });

  test('of a lease that has ended takes a free slot, and is lost where none is free', async () => {
    const instance = await anInstance(db, { max_concurrency: 8 });
    const [holder, next] = [randomUUID(), randomUUID()];
    await lease(instance, holder, 6);
    await endLeases(instance);
    expect(await lease(instance, next, 6)).toBe(6);
    const calls = [1, 2, 3].map(() => aCall(instance, holder, true));
    const lost = await recordCalls(db, calls);
    expect(lost.size).toBe(1);
    expect(await recordCalls(db, calls)).toEqual(lost);
    expect(await heldSlots(instance)).toBe(8);
    const [row] = await db('attempt').whereIn('attempt_id', [...lost]);
    expect(row).toMatchObject({ state: 'lost', certainty: 'estimated', counted: true, has_failed: true });
    expect(row.error).toMatchObject({ code: 'contact_lost' });
  });

  test('of a killed process is lost after its own lease, as any attempt is', async () => {
    const instance = await anInstance(db, { max_concurrency: 8 });
    const holder = randomUUID();
    await lease(instance, holder, 6);
    const call = aCall(instance, holder, true);
    await recordCalls(db, [{ ...call, claim: { ...call.claim, lease_ms: -6_000 } }]);
    expect(await loseExpiredAttempts(db)).toBe(1);
    const row = await db('attempt').where({ attempt_id: call.claim.attempt_id }).first('state');
    expect(row).toEqual({ state: 'lost' });
  });
});
