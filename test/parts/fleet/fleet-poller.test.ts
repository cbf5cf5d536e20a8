import { beforeAll, describe, expect, it } from 'vitest';
import { connectDatabase } from '../../../src/db/connect.ts';
import { createFleetPoller, type FleetPoller } from '../../../src/parts/fleet/fleet-poller.ts';
import { useDatabase } from '../../support/database.ts';
import { aSlotWish } from '../../support/factories.ts';
import { isLong } from '../../support/long.ts';
import { waitFor } from '../../support/wait.ts';
import { project, silentLogger } from '../../use-cases/registry/registry-bench.ts';

const { db, url } = useDatabase(10);
beforeAll(async () => {
  await db.raw(`insert into project (project_id, name) values (?, 'one')`, [project]);
});

let count = 0;
async function insertInstance(name: string, columns: Record<string, unknown> = {}): Promise<string> {
  const instance_id = `ins_${++count}`;
  const endpoint = `http://10.0.0.1:${8_000 + count}`;
  await db('instance').insert({
    instance_id,
    owner_project: project,
    name,
    endpoint,
    version: '1.0.0',
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_type: 'per_call',
    rate_usd: 0.25,
    tags: [],
    max_concurrency: 2,
    state: 'up',
    ...columns,
  });
  return instance_id;
}

function insertAttempt(instance_id: string, lease: string): Promise<unknown> {
  return db.raw(
    `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
       lease_until, cost_type, rate_usd, reserved_nano)
     select gen_random_uuid(), ?, gen_random_uuid(), 1, name, instance_id, endpoint, 'dispatched', gen_random_uuid(),
       now() + ?::interval, 'free', 0, 0 from instance where instance_id = ?`,
    [project, lease, instance_id],
  );
}

/** Polls only on command. */
function aPoller(): FleetPoller {
  return createFleetPoller({ db, intervalMs: 3_600_000, logger: silentLogger });
}
function held(fleet: FleetPoller, name: string): number | undefined {
  return fleet.seenBy(project).of(name).instances[0]?.held;
}

describe('candidates', () => {
  it('shows what the router needs, as numbers', async () => {
    const instance_id = await insertInstance('whole', {
      tags: ['gpu'],
      duration_ms: 120,
      deviation_ms: 8,
      mean_cost_usd: 0.02,
      success_count: 3,
      failure_count: 1,
      queue_depth: 7,
      queue_depth_held: 2,
      queue_depth_at: db.fn.now(),
      spec_digest: 'abc',
    });
    await insertAttempt(instance_id, '1 minute');
    await insertAttempt(instance_id, '-1 second');
    const fleet = aPoller();
    await fleet.refresh();
    const { endpoint } = await db('instance').where({ instance_id }).first('endpoint');
    expect(fleet.seenBy(project).of('whole').instances).toEqual([
      {
        instance_id,
        owner_project: 'prj_one',
        name: 'whole',
        version: '1.0.0',
        endpoint,
        cost_type: 'per_call',
        rate_usd: 0.25,
        tags: ['gpu'],
        max_concurrency: 2,
        state: 'up',
        spec_digest: 'abc',
        held: 2,
        reported_extra: 5,
        duration_ms: 120,
        deviation_ms: 8,
        mean_cost_usd: 0.02,
        success_count: 3,
        failure_count: 1,
        settle: 'computed',
        worst_case: null,
        expected_cost: null,
        price_source: null,
        overran: {},
        protocols: null,
        start_cost: null,
        token_cost: null,
        stops: false,
        answers_later: null,
        lengths: null,
        affinity: null,
        resident: [],
        max_resident: 1,
        distrusted: {},
        pace: null,
        last_call_ms: null,
        busy_since_ms: null,
        host: null,
        takes: null,
        host_calls: null,
        host_room: null,
        breaker_until_ms: null,
        is_local: false,
      },
    ]);
    expect(fleet.seenBy(project).of('whole').declaring).toBeUndefined();
    expect(fleet.seenBy(project).of('nobody').instances).toEqual([]);
    await db('instance').where({ instance_id }).update({ worst_case: '{{ input.n }}' });
    await fleet.refresh();
    expect(fleet.seenBy(project).of('whole').declaring).toEqual(fleet.seenBy(project).of('whole').instances);
  });

  it('leaves out who has been down for a quarter of an hour', async () => {
    const down = (minutes: number) => ({
      state: 'down',
      down_since: db.raw(`now() - interval '${minutes} minutes'`),
    });
    const late = await insertInstance('fallen', down(14));
    await insertInstance('fallen', down(16));
    const fleet = aPoller();
    await fleet.refresh();
    expect(
      fleet
        .seenBy(project)
        .of('fallen')
        .instances.map(({ instance_id }) => instance_id),
    ).toEqual([late]);
  });

  it('forgets a reported queue after 90 s, though the row does not change', async () => {
    const queue_depth_at = db.raw(`now() - interval '89 seconds'`);
    const fleet = aPoller();
    let [name, reports] = ['', 0];
    const isSeenAs = async (extra: number): Promise<boolean> => {
      await fleet.refresh();
      return fleet.seenBy(project).of(name).instances[0]?.reported_extra === extra;
    };
    await waitFor('a look within the last second of a report', async () => {
      reports += 1;
      name = `queued-${reports}`;
      await insertInstance(name, { queue_depth: 4, queue_depth_at });
      return isSeenAs(4);
    });
    await waitFor('the report to be too old', () => isSeenAs(0));
  });
});

describe('polling', () => {
  it('sees a change that another connection made, by itself', async () => {
    const instance_id = await insertInstance('watched');
    const fleet = createFleetPoller({ db, intervalMs: 20, logger: silentLogger });
    await fleet.start();
    expect(fleet.seenBy(project).of('watched').instances[0]?.state).toBe('up');
    const other = connectDatabase(url, 1);
    await other('instance').where({ instance_id }).update({ state: 'down' });
    await waitFor(
      'the fleet shows it',
      () => fleet.seenBy(project).of('watched').instances[0]?.state === 'down',
    );
    await Promise.all([fleet.close(), other.destroy()]);
  });

  it('does not miss a change that was committed after a later one had been seen', async () => {
    const slow = await insertInstance('gap');
    const fast = await insertInstance('gap');
    const fleet = aPoller();
    await fleet.refresh();
    const max = (): Record<string, number> =>
      Object.fromEntries(
        fleet
          .seenBy(project)
          .of('gap')
          .instances.map((c) => [c.instance_id, c.max_concurrency]),
      );
    await db.transaction(async (trx) => {
      await trx('instance').where({ instance_id: slow }).update({ max_concurrency: 5 });
      await db('instance').where({ instance_id: fast }).update({ max_concurrency: 6 });
      await fleet.refresh();
      await fleet.refresh();
      expect(max()).toEqual({ [slow]: 2, [fast]: 6 });
    });
    await fleet.refresh();
    expect(max()).toEqual({ [slow]: 5, [fast]: 6 });
  });

  it('ends with the database’s state after many concurrent updates', async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => insertInstance('busy')));
    const fleet = createFleetPoller({ db, intervalMs: 1, logger: silentLogger });
    await fleet.start();
    const rounds = isLong ? 30 : 9;
    const writers = ids.map(async (instance_id, writer) => {
      for (let round = 1; round <= rounds; round++) {
        await db.transaction(async (trx) => {
          const max_concurrency = writer * 100 + round;
          await trx('instance').where({ instance_id }).update({ max_concurrency });
          if (round % 3 === 0) await trx.raw('select pg_sleep(0.002)');
        });
      }
    });
    await Promise.all(writers);
    await fleet.close();
    await fleet.refresh();
    const seen = fleet
      .seenBy(project)
      .of('busy')
      .instances.map(({ instance_id, max_concurrency }) => [instance_id, max_concurrency]);
    expect(Object.fromEntries(seen)).toEqual(
      Object.fromEntries(ids.map((id, writer) => [id, writer * 100 + rounds])),
    );
  });

  it('continues with the known instances when the database does not answer', async () => {
    await insertInstance('lasting');
    const own = connectDatabase(url, 1);
    const fleet = createFleetPoller({ db: own, intervalMs: 10, logger: silentLogger });
    await fleet.start();
    fleet.noteClaim(fleet.seenBy(project).of('lasting').instances[0]?.instance_id as string);
    await own.destroy();
    await expect(fleet.refresh()).rejects.toThrow();
    expect(held(fleet, 'lasting')).toBe(1);
    await fleet.close();
  });
});

describe('held calls', () => {
  it('counts a claim at once and only once, also after the poll that saw it', async () => {
    const instance_id = await insertInstance('claimed');
    const fleet = aPoller();
    await fleet.refresh();
    fleet.noteClaim(instance_id);
    expect(held(fleet, 'claimed')).toBe(1);
    await insertAttempt(instance_id, '1 minute');
    await fleet.refresh();
    expect(held(fleet, 'claimed')).toBe(1);
    fleet.noteRelease(instance_id);
    expect(held(fleet, 'claimed')).toBe(0);
  });

  it('takes a refused claim back only where it still counts, never from what others hold', async () => {
    const instance_id = await insertInstance('refused');
    await insertAttempt(instance_id, '1 minute');
    const fleet = aPoller();
    await fleet.refresh();
    const takeBack = fleet.noteClaim(instance_id);
    expect(held(fleet, 'refused')).toBe(2);
    takeBack();
    expect(held(fleet, 'refused')).toBe(1);

    const late = fleet.noteClaim(instance_id);
    await fleet.refresh(); // which has not found it
    late();
    expect(held(fleet, 'refused')).toBe(1);

    const meanwhile = fleet.noteClaim(instance_id);
    const polling = fleet.refresh();
    meanwhile();
    expect(held(fleet, 'refused')).toBe(1);
    await polling;
    expect(held(fleet, 'refused')).toBe(1);
  });

  it('keeps a claim that was made during a poll', async () => {
    const instance_id = await insertInstance('overtaken');
    const fleet = aPoller();
    await fleet.refresh();
    const polling = fleet.refresh();
    fleet.noteClaim(instance_id);
    await polling;
    expect(held(fleet, 'overtaken')).toBe(1);
  });
});

describe('waitForRelease', () => {
  const quiet = new AbortController().signal;

  it('wakes at a release of the capability, not of another', async () => {
    const mine = await insertInstance('awaited', { max_concurrency: 1 });
    await insertAttempt(mine, '1 minute');
    const foreign = await insertInstance('unrelated');
    const fleet = aPoller();
    await fleet.refresh();
    const woken: boolean[] = [];
    const waiting = fleet
      .waitForRelease(aSlotWish('awaited'), 10_000, quiet)
      .then((isRung) => woken.push(isRung));
    fleet.noteRelease(foreign);
    await fleet.refresh();
    expect(woken).toEqual([]);
    fleet.noteRelease(mine);
    await waiting;
    expect(woken).toEqual([true]);
  });

  it('wakes when a poll shows a slot that another process released, or an instance that came up', async () => {
    const instance_id = await insertInstance('elsewhere', { max_concurrency: 1 });
    await insertAttempt(instance_id, '1 minute');
    const fleet = aPoller();
    await fleet.refresh();
    const released = fleet.waitForRelease(aSlotWish('elsewhere'), 10_000, quiet);
    await db('attempt').where({ instance_id }).update({ state: 'settled' });
    await fleet.refresh();
    expect(await released).toBe(true);
    const another = fleet.waitForRelease(aSlotWish('elsewhere'), 10_000, quiet);
    await insertInstance('elsewhere');
    await fleet.refresh();
    expect(await another).toBe(true);
  });

  it('wakes though the slot was used and released again between two polls', async () => {
    const instance_id = await insertInstance('blinking', { max_concurrency: 1 });
    const fleet = aPoller();
    await fleet.refresh();
    const waiting = fleet.waitForRelease(aSlotWish('blinking'), 10_000, quiet);
    await insertAttempt(instance_id, '1 minute');
    await db('attempt').where({ instance_id }).update({ state: 'settled' });
    await fleet.refresh();
    expect(await waiting).toBe(true);
  });

  it('ends without a release when the time is over or the waiter has left', async () => {
    const fleet = aPoller();
    const abort = new AbortController();
    const waiting = fleet.waitForRelease(aSlotWish('nothing'), 10_000, abort.signal);
    abort.abort();
    expect(await waiting).toBe(false);
    expect(await fleet.waitForRelease(aSlotWish('nothing'), 10_000, abort.signal)).toBe(false);
    expect(await fleet.waitForRelease(aSlotWish('nothing'), 5, quiet)).toBe(false);
  });
});
