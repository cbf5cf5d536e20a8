import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Claim, loseExpiredAttempts, settleAndClaim } from '../../../src/db/attempt/attempt.ts';
import { leaseSlots, recordCalls } from '../../../src/db/attempt/slot-lease.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import {
  endHostDrain,
  joinHost,
  lockHostName,
  lockInstancesOn,
  purgeHosts,
  setHostDrain,
} from '../../../src/db/instance/host.ts';
import { type InstanceColumns, lockInstance } from '../../../src/db/instance/instance.ts';
import { newId } from '../../../src/parts/ids.ts';
import { listBreaches, watchCommits } from '../../support/commit-watch.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  claimAttempt,
  claimAttempts,
  settleAttempt,
} from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';

/** Of each of four processes. A connection costs as much as many claims. */
const poolSize = isLong ? 8 : 4;
const callers = isLong ? 48 : 24;
const rounds = isLong ? 40 : 12;
const { db, url } = useDatabase(poolSize);
const others = [1, 2, 3].map(() => connectDatabase(url, poolSize));
const pools = [db, ...others];
beforeAll(() => watchCommits(db));
afterAll(() => Promise.all(others.map((pool) => pool.destroy())));

interface Box {
  readonly owner_project: string;
  readonly host: string;
  readonly host_slots: number;
}

async function aBox(host_slots: number, owner_project?: string): Promise<Box> {
  const owner = owner_project ?? (await aProject(db)).project_id;
  const host = `box-${randomUUID()}`;
  await joinHost(db, owner, { name: host, slots: host_slots });
  return { owner_project: owner, host, host_slots };
}

function onBox(box: Box, instance: Parameters<typeof anInstance>[1] = {}): Promise<InstanceColumns> {
  return anInstance(db, { takes: 1, max_concurrency: 4, ...box, ...instance });
}

function aCall(instance: InstanceColumns, claim: Partial<Claim> = {}): Claim {
  const run = { run_id: '', project_id: instance.owner_project };
  return aClaim(run, instance, { step: null, is_first: true, key: newId('call'), ...claim });
}

async function outcomesOf(claims: readonly Claim[]): Promise<string[]> {
  return (await claimAttempts(db, claims)).map(({ outcome }) => outcome);
}

describe('a call on an instance with a host', () => {
  it('takes a slot of the instance and one of the host', async () => {
    const box = await aBox(2);
    const [image, voice] = [await onBox(box), await onBox(box, { name: 'voice' })];
    const first = aCall(image);
    expect(await outcomesOf([first])).toEqual(['claimed']);
    expect(await outcomesOf([aCall(voice)])).toEqual(['claimed']);
    expect(await outcomesOf([aCall(voice)])).toEqual(['full']);
    expect(await outcomesOf([aCall(image)])).toEqual(['full']);
    await settleAttempt(db, anEnd(first));
    expect(await outcomesOf([aCall(voice)])).toEqual(['claimed']);
  });

  it('takes as many as its instance registered, and no more than the host has', async () => {
    const box = await aBox(4);
    const [large, small] = [await onBox(box, { takes: 3 }), await onBox(box)];
    expect(await outcomesOf([aCall(large)])).toEqual(['claimed']);
    expect(await outcomesOf([aCall(large)])).toEqual(['full']);
    expect(await outcomesOf([aCall(small)])).toEqual(['claimed']);
    expect(await outcomesOf([aCall(small)])).toEqual(['full']);
    const halved = await aBox(2);
    const huge = await onBox(halved, { takes: 3 });
    expect(await outcomesOf([aCall(huge), aCall(huge)])).toEqual(['claimed', 'full']);
  });

  it('is counted with the others of its statement, on every instance of the host', async () => {
    const box = await aBox(3);
    const [image, voice] = [await onBox(box), await onBox(box, { name: 'voice' })];
    const plain = await anInstance(db, { owner_project: box.owner_project, max_concurrency: 9 });
    const claims = [aCall(image), aCall(voice), aCall(plain), aCall(voice), aCall(image), aCall(plain)];
    const outcomes = await outcomesOf(claims);
    expect(outcomes.filter((outcome) => outcome === 'claimed')).toHaveLength(5);
    expect(outcomes.filter((outcome) => outcome === 'full')).toHaveLength(1);
    expect([outcomes[2], outcomes[5]]).toEqual(['claimed', 'claimed']);
  });

  it('is counted with the others of its statement also where they are claimed one by one', async () => {
    const box = await aBox(1);
    const [image, voice] = [await onBox(box), await onBox(box, { name: 'voice' })];
    const key = newId('call');
    const again = { is_first: false, key };
    const outcomes = await outcomesOf([aCall(image, again), aCall(voice), aCall(image, again)]);
    expect(outcomes).toEqual(['claimed', 'full', 'claimed']);
  });

  it('is not made where the router did not know that the instance has a host, or has none', async () => {
    const box = await aBox(1);
    const [image, plain] = [await onBox(box), await anInstance(db)];
    expect(await outcomesOf([aCall(image, { has_host: false })])).toEqual(['gone']);
    expect(await outcomesOf([aCall(plain, { has_host: true })])).toEqual(['gone']);
  });

  it('shares no slots with a host of the same name of another project', async () => {
    const [one, other] = [await aBox(1), await aBox(1)];
    await joinHost(db, other.owner_project, { name: one.host, slots: 1 });
    const [own, foreign] = [await onBox(one), await onBox({ ...one, owner_project: other.owner_project })];
    expect(await outcomesOf([aCall(own), aCall(foreign)])).toEqual(['claimed', 'claimed']);
  });

  it('takes slots of the host of its instance, whichever project calls', async () => {
    const box = await aBox(1);
    const shared = await onBox(box);
    const caller = await aProject(db);
    expect(await outcomesOf([aCall(shared, { project_id: caller.project_id })])).toEqual(['claimed']);
    expect(await outcomesOf([aCall(shared)])).toEqual(['full']);
  });

  it('holds no slot of the host once its instance has handed it on', async () => {
    const box = await aBox(1);
    const image = await onBox(box);
    const parked = aCall(image);
    await claimAttempt(db, parked);
    await db('attempt')
      .where({ attempt_id: parked.attempt_id })
      .update({ later: JSON.stringify({ slot: 'freed' }) });
    expect(await outcomesOf([aCall(image)])).toEqual(['claimed']);
  });

  it('holds its slots while its instance registers again, or has left, and frees them when its process is lost', async () => {
    const box = await aBox(2);
    const [image, voice] = [await onBox(box), await onBox(box, { name: 'voice' })];
    const lost = aCall(image, { lease_ms: -6_000 });
    expect(await outcomesOf([lost, aCall(image)])).toEqual(['claimed', 'claimed']);
    await joinHost(db, box.owner_project, { name: box.host, slots: 2 });
    await db('instance').where({ instance_id: image.instance_id }).update({ state: 'deregistered' });
    expect(await outcomesOf([aCall(voice)])).toEqual(['full']);
    await loseExpiredAttempts(db);
    expect(await outcomesOf([aCall(voice), aCall(voice)])).toEqual(['claimed', 'full']);
  });

  it('leases no slot, and those that its instance leased before count until they end', async () => {
    const box = await aBox(16);
    const image = await onBox(box, { host: null, host_slots: null, takes: null, max_concurrency: 64 });
    const [holder, rest] = [randomUUID(), { slots: 6, inUse: 0, leaseMs: 30_000 }];
    const lease = { instanceId: image.instance_id, holder, ...rest };
    expect(await leaseSlots(db, lease)).toBe(6);
    await db('instance')
      .where({ instance_id: image.instance_id })
      .update({ ...box, takes: 2 });
    const claims = [1, 2, 3].map(() => aCall({ ...image, ...box }));
    expect(await outcomesOf(claims)).toEqual(['claimed', 'claimed', 'full']);
    const open = { holder, claim: aCall(image), beganAtMs: performance.now() - 65, ended: null };
    expect((await recordCalls(db, [open])).size).toBe(0);
    await db('slot_lease')
      .where({ holder })
      .update({ expires_at: new Date(0) });
    expect((await recordCalls(db, [{ ...open, claim: aCall(image) }])).size).toBe(1);
    expect(await leaseSlots(db, lease)).toBe(0);
  });
});

describe('a host', () => {
  it('has the size of the newest registration, and keeps its memory where that names none', async () => {
    const { owner_project, host: name } = await aBox(4);
    await joinHost(db, owner_project, { name, slots: 2, memory_gb: 24 });
    await joinHost(db, owner_project, { name, slots: 3 });
    expect(await db('host').where({ name }).first('slots', 'memory_gb')).toEqual({ slots: 3, memory_gb: 24 });
  });

  it('is deleted once no instance names it', async () => {
    const [left, named] = [await aBox(1), await aBox(1)];
    await onBox(named);
    await purgeHosts(db);
    const names = await db('host').whereIn('name', [left.host, named.host]).pluck('name');
    expect(names).toEqual([named.host]);
  });
});

/** Three boxes, with instances that are listed neither by their box nor by their id, and some on none. */
async function aFleet(): Promise<InstanceColumns[]> {
  const boxes = await Promise.all([aBox(2), aBox(3), aBox(5)]);
  const hosted = boxes.flatMap((box) =>
    [1, 2, 3, 1].map((takes) => onBox(box, { takes, max_concurrency: 3 })),
  );
  const plain = [1, 2].map(() => anInstance(db, { max_concurrency: 2 }));
  return Promise.all([...hosted, ...plain]);
}

function pick<Item>(items: readonly Item[]): Item {
  return items[randomInt(items.length)] as Item;
}

/** Registers instances again, and drains their hosts, until the calls have ended. */
async function changeFleet(fleet: readonly InstanceColumns[], isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const { instance_id, owner_project, host, host_slots } = pick(fleet);
    if (host === null || host_slots === null) continue;
    const key = { owner_project, name: host };
    await db.transaction(async (trx) => {
      await lockHostName(trx, key);
      await lockInstance(trx, instance_id);
      await joinHost(trx, owner_project, { name: host, slots: host_slots, memory_gb: 1 + randomInt(99) });
    });
    await db.transaction(async (trx) => {
      await lockHostName(trx, key);
      await lockInstancesOn(trx, key);
      await setHostDrain(trx, key, { by: 'ana', reason: null, until: null });
      await endHostDrain(trx, key);
    });
  }
}

it('holds no more than its slots under any interleaving of claims and ends, in batches over instances and hosts', async () => {
  const fleet = await aFleet();
  const count = { claimed: 0, full: 0 };
  const caller = async (at: number): Promise<void> => {
    const on = pools[at % pools.length] as Db;
    let open: Claim[] = [];
    for (let n = 0; n < rounds; n++) {
      const ended = open.filter(() => randomInt(3) > 0);
      const claims = Array.from({ length: 1 + randomInt(5) }, () => aCall(pick(fleet)));
      const turn = { ends: ended.map((claim) => anEnd(claim)), claims };
      const { claims: results } = await settleAndClaim(on, turn, true);
      const claimed = claims.filter((_, i) => results[i]?.outcome === 'claimed');
      count.claimed += claimed.length;
      count.full += claims.length - claimed.length;
      open = [...open.filter((claim) => !ended.includes(claim)), ...claimed];
    }
    await settleAndClaim(on, { ends: open.map((claim) => anEnd(claim)), claims: [] }, true);
  };
  let isOver = false;
  const calls = Promise.all(Array.from({ length: callers }, (_, at) => caller(at))).finally(() => {
    isOver = true;
  });
  await Promise.all([calls, changeFleet(fleet, () => isOver)]); // a deadlock rejects one of them
  expect(await listBreaches(db)).toEqual([]);
  const held = await db('host').select(db.raw('host_held(owner_project, name, slots) as held, name'));
  const names = new Set(fleet.map(({ host }) => host));
  expect(held.filter((row) => names.has(row.name) && row.held > 0)).toEqual([]);
  expect(count.claimed).toBeGreaterThan(callers);
  expect(count.full).toBeGreaterThan(0);
});
