import {
  applyFolded,
  distrustMs,
  type FoldedAverage,
  foldValue,
  reportKeys,
  serveKey,
} from '@capstan/core/residency/residency';
import type { Residency } from '@capstan/core/routing/types';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  foldLoadTimes,
  purgeLoadTimes,
  recordResident,
  serveKeys,
} from '../../../src/db/instance/residency.ts';
import { createFleetPoller, type FleetPoller } from '../../../src/parts/fleet/fleet-poller.ts';
import { createResidencyRecorder } from '../../../src/parts/fleet/residency-recorder.ts';
import { useDatabase } from '../../support/database.ts';
import { aSlotWish } from '../../support/factories.ts';
import { runs } from '../../support/runs.ts';
import { project, silentLogger } from '../../use-cases/registry/registry-bench.ts';

const { db } = useDatabase(10);
beforeAll(async () => {
  await db.raw(`insert into project (project_id, name) values (?, 'one')`, [project]);
});

let count = 0;
async function anInstance(columns: Record<string, unknown> = {}) {
  const number = ++count;
  const endpoint = `http://10.0.0.1:${8_000 + number}`;
  const row = { instance_id: `ins_${number}`, owner_project: project, name: `image-${number}` };
  await db('instance').insert({
    ...row,
    endpoint,
    version: '1.0.0',
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_type: 'free',
    rate_usd: 0,
    tags: [],
    max_concurrency: 2,
    state: 'up',
    affinity: '{{ input.model }}',
    ...columns,
  });
  return row;
}

async function residentOf({ instance_id }: { readonly instance_id: string }): Promise<readonly string[]> {
  return (await db('instance').where({ instance_id }).first('resident'))?.resident;
}

/** A router process, which polls on command. */
function aRouter() {
  const fleet = createFleetPoller({ db, intervalMs: 3_600_000, logger: silentLogger });
  return { fleet, recorder: createResidencyRecorder({ db, fleet, logger: silentLogger }) };
}

function seenBy(fleet: FleetPoller, name: string) {
  return fleet.seenBy(project).of(name).instances[0];
}

const expected: Residency = {
  key: 'sdxl',
  isResident: true,
  isListed: true,
  warmMs: 1_000,
  loadMs: 2_000,
  pace: 1,
  isLearnt: true,
  leftMs: 0,
  usedAtMs: 1,
};

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e f', '{g}', "h'");
const list = fc.uniqueArray(key);

describe('the list of an instance', () => {
  it('is that of the rules, for keys that are served and for reports', async () => {
    const { instance_id } = await anInstance();
    const property = fc.asyncProperty(
      list,
      fc.array(key, { minLength: 1 }),
      list,
      fc.integer({ min: 1, max: 5 }),
      async (known, served, reported, most) => {
        await db('instance').where({ instance_id }).update({ resident: known, max_resident: most });
        const newest = [...new Set(served.toReversed())];
        await serveKeys(db, [{ instance_id, keys: newest }]);
        const after = served
          .reduce<readonly string[]>((keys, one) => serveKey(keys, one, 64), known)
          .slice(0, most);
        expect(await residentOf({ instance_id })).toEqual(after);
        await recordResident(db, instance_id, reported);
        expect(await residentOf({ instance_id })).toEqual(reportKeys(after, reported, false));
      },
    );
    await fc.assert(property, { numRuns: runs(30) });
  });

  it('keeps a key that an open call loads, which the report does not have yet', async () => {
    const { instance_id } = await anInstance({ resident: ['sdxl', 'x'] });
    await db.raw(
      `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
         lease_until, cost_type, rate_usd, reserved_nano)
       select gen_random_uuid(), ?, gen_random_uuid(), 1, name, instance_id, endpoint, 'dispatched', gen_random_uuid(),
         now() + interval '1 minute', 'free', 0, 0 from instance where instance_id = ?`,
      [project, instance_id],
    );
    await recordResident(db, instance_id, ['x', 'y']);
    expect(await residentOf({ instance_id })).toEqual(['sdxl', 'x', 'y']);
  });

  it('holds as many keys as were reported at once, if its registration gives no number', async () => {
    const row = await anInstance();
    await serveKeys(db, [{ instance_id: row.instance_id, keys: ['a', 'b'] }]);
    expect(await residentOf(row)).toEqual(['a']);
    await recordResident(db, row.instance_id, ['a', 'b']);
    await serveKeys(db, [{ instance_id: row.instance_id, keys: ['c'] }]);
    expect(await residentOf(row)).toEqual(['c', 'a']);
  });
});

it('a key that begins to be served is known to this router at once, and to another after its poll', async () => {
  const row = await anInstance();
  const [one, other] = [aRouter(), aRouter()];
  await one.fleet.refresh();
  one.recorder.noteServed(row, 'sdxl');
  expect(seenBy(one.fleet, row.name)?.resident).toEqual(['sdxl']);
  await one.recorder.flush();
  await other.fleet.refresh();
  expect(seenBy(other.fleet, row.name)).toMatchObject({ resident: ['sdxl'], max_resident: 1 });
  one.recorder.noteServed(row, 'sdxl'); // writes nothing
  const before = await db('instance').where({ instance_id: row.instance_id }).first('changed_xid');
  await one.recorder.flush();
  expect(await db('instance').where({ instance_id: row.instance_id }).first('changed_xid')).toEqual(before);
});

it('a key whose load has failed is loaded nowhere, unless it is served again', async () => {
  const row = await anInstance({ resident: ['a', 'b'], max_resident: 3 });
  const [one, other] = [aRouter(), aRouter()];
  await one.fleet.refresh();
  one.recorder.noteServed(row, 'huge');
  await one.recorder.flush();
  one.recorder.noteUnloaded(row, 'huge');
  expect(seenBy(one.fleet, row.name)?.resident).toEqual(['a', 'b']);
  await one.recorder.flush();
  await other.fleet.refresh();
  expect(seenBy(other.fleet, row.name)?.resident).toEqual(['a', 'b']);
  one.recorder.noteServed(row, 'huge');
  one.recorder.noteUnloaded(row, 'huge'); // before the first was written
  await one.recorder.flush();
  expect(await residentOf(row)).toEqual(['a', 'b']);
  one.recorder.noteUnloaded(row, 'huge');
  one.recorder.noteServed(row, 'huge');
  await one.recorder.flush();
  expect(await residentOf(row)).toEqual(['huge', 'a', 'b']);
});

it('a key whose load has failed is loaded if a call beside it succeeds, whatever polls have read meanwhile', async () => {
  const row = await anInstance();
  const { fleet, recorder } = aRouter();
  await fleet.refresh();
  recorder.noteServed(row, 'sdxl');
  await recorder.flush();
  recorder.noteUnloaded(row, 'sdxl');
  await fleet.refresh(); // before the loss is written
  expect(seenBy(fleet, row.name)?.resident).toEqual(['sdxl']);
  recorder.recordCall(row, expected, 1_000);
  await recorder.flush();
  expect(await residentOf(row)).toEqual(['sdxl']);
});

it('a report that cannot be written loses no other', async () => {
  const [one, other] = [await anInstance(), await anInstance()];
  const { fleet, recorder } = aRouter();
  await fleet.refresh();
  recorder.noteReport(one, ['a\u0000b']);
  recorder.noteReport(other, ['sdxl']);
  await expect(recorder.flush()).rejects.toThrow('invalid byte sequence');
  expect([await residentOf(one), await residentOf(other)]).toEqual([[], ['sdxl']]);
});

it('the age of the oldest call that holds a slot is known, of instances with keys', async () => {
  const [keyed, plain] = [await anInstance({ resident: ['a'] }), await anInstance()];
  for (const [{ instance_id }, age, later] of [
    [keyed, '1 hour', { slot: 'freed' }],
    [keyed, '20 minutes', { slot: 'held' }],
    [keyed, '5 minutes', null],
    [plain, '9 minutes', null],
  ] as const) {
    await db.raw(
      `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
         lease_until, cost_type, rate_usd, reserved_nano, started_at, later)
       select gen_random_uuid(), ?, gen_random_uuid(), 1, name, instance_id, endpoint, 'dispatched', gen_random_uuid(),
         now() + interval '1 minute', 'free', 0, 0, now() - ?::interval, ?::jsonb from instance where instance_id = ?`,
      [project, age, later && JSON.stringify(later), instance_id],
    );
  }
  const { fleet } = aRouter();
  await fleet.refresh();
  const ageOf = ({ name }: { readonly name: string }): number | null => {
    const since = seenBy(fleet, name)?.busy_since_ms ?? null;
    return since === null ? null : Math.round((fleet.nowMs() - since) / 60_000);
  };
  expect([ageOf(keyed), ageOf(plain)]).toEqual([20, null]);
});

it('a report that changes nothing writes nothing', async () => {
  const row = await anInstance({ resident: ['a', 'b'] });
  const changed = async () =>
    (await db('instance').where({ instance_id: row.instance_id }).first('changed_xid'))?.changed_xid;
  await recordResident(db, row.instance_id, ['b', 'a']);
  const before = await changed();
  await recordResident(db, row.instance_id, ['b', 'a']);
  expect(await changed()).toBe(before);
});

describe('what calls have shown', () => {
  it('merges from several routers into one average, by the rules', async () => {
    const row = await anInstance();
    const values = [1_000, 2_000, 4_000, 3_000];
    const fold = (some: readonly number[]): FoldedAverage =>
      some.reduce<FoldedAverage | undefined>(
        (sum, value) => foldValue(sum, value, 0.1),
        undefined,
      ) as FoldedAverage;
    const report = (warm: FoldedAverage) => ({
      ...row,
      owner_project: project,
      key: 'a',
      warm,
      cold: undefined,
    });
    await foldLoadTimes(db, [report(fold(values.slice(0, 2)))]);
    await foldLoadTimes(db, [report(fold(values.slice(2)))]);
    const stored = await db('load_time').where({ name: row.name }).first('*');
    expect(stored).toMatchObject({ key: 'a', cold_ms: null });
    expect(stored?.warm_ms).toBeCloseTo(applyFolded(null, fold(values)), 6);
  });

  it('is known to routers: times of a key, the pace of an instance, and keys that are not believed', async () => {
    const row = await anInstance({ resident: ['x', 'sdxl'] });
    const [one, other] = [aRouter(), aRouter()];
    await one.fleet.refresh();
    one.recorder.recordCall(row, expected, 3_200); // the time of a load
    await one.recorder.flush();
    await other.fleet.refresh();
    const { loads } = other.fleet.seenBy(project).of(row.name);
    expect(loads?.(project, 'sdxl')).toEqual({ warmMs: null, coldMs: 3_200 });
    const snapshot = seenBy(other.fleet, row.name);
    expect(snapshot?.pace).toBeCloseTo(1 + 0.05 * (3_200 / 3_000 - 1), 6);
    const until = snapshot?.distrusted?.sdxl ?? 0;
    expect(Math.abs(until - other.fleet.nowMs() - distrustMs)).toBeLessThan(60_000);
  });

  it('has averages of its own for the 200 newest keys, and goes a day after the last call', async () => {
    const row = await anInstance();
    const warm = foldValue(undefined, 1, 0.1);
    const toReport = (key: string) => ({ ...row, key, warm, cold: undefined });
    const report = (...keys: readonly string[]) => foldLoadTimes(db, keys.map(toReport));
    const stored = async (): Promise<string[]> =>
      db('load_time').where({ name: row.name }).orderBy('key').pluck('key');
    const { fleet } = aRouter();
    const known = () => fleet.seenBy(project).of(row.name).loads;
    await report('', ...Array.from({ length: 200 }, (_, at) => `k${at}`));
    await fleet.refresh();
    await report('k0');
    await report(...Array.from({ length: 199 }, (_, at) => `new${at}`));
    await fleet.refresh();
    expect((await stored()).filter((key) => !key.startsWith('new'))).toEqual(['', 'k0']);
    expect(await stored()).toHaveLength(201);
    expect(['', 'k0', 'k1', 'new7'].map((key) => known()?.(project, key) !== undefined)).toEqual([
      ...[true, true, false, true],
    ]);
    await db('load_time')
      .where({ name: row.name })
      .update({ seen_at: db.raw(`now() - interval '25 hours'`) });
    await purgeLoadTimes(db);
    expect(await stored()).toEqual(['']);
  });
});

it('a free slot wakes the first call that waits for what is loaded there, else all', async () => {
  const row = await anInstance({ resident: ['x'] });
  const { fleet } = aRouter();
  await fleet.refresh();
  const woken: string[] = [];
  const { signal } = new AbortController();
  const waiting = ['y', 'x', 'x'].map(async (key, at) => {
    if (await fleet.waitForRelease(aSlotWish(row.name, { key }), 60_000, signal)) woken.push(`${key}${at}`);
  });
  fleet.noteRelease(row.instance_id);
  await waiting[1];
  expect(woken).toEqual(['x1']);
  fleet.noteRelease(row.instance_id);
  await waiting[2];
  expect(woken).toEqual(['x1', 'x2']);
  fleet.noteRelease(row.instance_id);
  await Promise.all(waiting);
  expect(woken).toEqual(['x1', 'x2', 'y0']);
});
