import { afterEach, expect, it, vi } from 'vitest';
import { joinHost } from '../../../src/db/instance/host.ts';
import { callMembers, callNext, queueCall, readLines } from '../../../src/db/step/call-line.ts';
import { keepWaiting } from '../../../src/db/step/step-progress.ts';
import { createFleetPoller } from '../../../src/parts/fleet/fleet-poller.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createDueWork } from '../../../src/use-cases/runs/due-work.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aClaim, anInstance, aProject, aRun, claimAttempt } from '../../support/factories.ts';
import { untilLocked } from '../../support/locks.ts';

const { db } = useDatabase();
afterEach(() => void vi.useRealTimers());

function attend(): Promise<number> {
  const workflows = { signalWoken: async () => 'sent' as const };
  const ctx = aDeliveryCtx(db, { workflows } as never);
  return createDueWork({ ...ctx, fleet: createFleetPoller({ db, logger: ctx.logger }) })();
}

interface Entry {
  readonly priority?: number;
  readonly loads?: string;
  readonly awaits?: string;
  readonly refuses?: readonly string[];
}

const usual = { priority: 2, loads: null, awaits: null, refuses: null, asideMs: [500] };

async function aStarted() {
  const run = await aRun(db);
  await db('run').where({ run_id: run.run_id }).update({ start_delivered_at: db.fn.now() });
  return run;
}

/** An item of a step of the run waits for a slot. */
async function enter({ run_id }: { run_id: string }, line: string, item: number, entry: Entry = {}) {
  const key = { run_id, step_id: 's', item };
  await db('step').insert({ ...key, state: 'waiting', awaiting: 'slot' });
  await db.transaction((trx) => queueCall(trx, { ...key, line, ...usual, ...entry }));
  return key;
}

async function hold(instance: { readonly instance_id: string }, project_id: string): Promise<void> {
  const call = { step: null, is_first: true, key: newId('call') };
  await claimAttempt(db, aClaim({ run_id: '', project_id }, instance as never, call));
}

function calledOf(...lines: readonly string[]): Promise<number[]> {
  return db('queued_call').whereIn('line', lines).whereNotNull('called_at').orderBy('item').pluck('item');
}

it('a call that comes back to its line, while ended waits are dropped, is in it', async () => {
  const key = await enter(await aStarted(), 'back', 1);
  await callNext(db, 'back', 1);
  await db('step').where(key).update({ state: 'retrying', awaiting: null });
  const trx = await db.transaction();
  const wait = { awaiting: 'slot', until: null, for_ms: null, begins: false } as const;
  await keepWaiting(trx, { ...key, revision: 0 }, wait);
  await queueCall(trx, { ...key, line: 'back', ...usual });
  const lines = readLines(db);
  await Promise.race([lines, untilLocked(db)]);
  await trx.commit();
  await lines;
  expect(await db('queued_call').where(key)).toHaveLength(1);
});

it('lines that share a host take turns, also where calls pass others', async () => {
  const { project_id: owner_project } = await aProject(db);
  await joinHost(db, owner_project, { name: 'g', slots: 1 });
  const box = { owner_project, host: 'g', host_slots: 1, takes: 1, max_concurrency: 1 };
  await anInstance(db, { ...box, name: 'keyed', affinity: '{{ input.m }}', resident: ['x'] } as never);
  await anInstance(db, { ...box, name: 'plain' });
  await db('load_time').insert({ owner_project, name: 'keyed', key: '', warm_ms: 1_000, cold_ms: 61_000 });
  const run = await aStarted();
  await enter(run, 'keyed', 1, { loads: 'y' });
  for (let item = 2; item < 6; item++) await enter(run, 'keyed', item, { loads: 'x' });
  const other = await aStarted();
  for (let item = 11; item < 14; item++) await enter(other, 'plain', item);
  const called: number[] = [];
  for (let round = 0; round < 6; round++) {
    await attend();
    const items = await calledOf('keyed', 'plain');
    called.push(...items);
    await db('step').whereIn('item', items).update({ state: 'succeeded', awaiting: null });
  }
  expect(called).toEqual([2, 11, 3, 12, 4, 13]);
});

it('N2: a new run comes behind what was called, also by passing others', async () => {
  const large = await aStarted();
  await enter(large, 'passed', 1, { loads: 'y' });
  for (let item = 2; item < 6; item++) await enter(large, 'passed', item, { loads: 'x' });
  const passing = [2, 3].map((item) => ({ run_id: large.run_id, step_id: 's', item, isPassing: true }));
  await callMembers(db, 'passed', passing);
  const small = await enter(await aStarted(), 'passed', 1);
  expect(await db('queued_call').where(small).first('place')).toEqual({ place: '4' });
  const [line] = (await readLines(db)).filter((one) => one.line === 'passed');
  expect(line?.since_turn_ms).toEqual({ 2: null });
  await callMembers(db, 'passed', [{ run_id: large.run_id, step_id: 's', item: 1, isPassing: false }]);
  const [after] = (await readLines(db)).filter((one) => one.line === 'passed');
  expect(after?.since_turn_ms).toEqual({ 2: expect.any(Number) });
});

it('a call that changes its line has a place of the new one', async () => {
  await enter(await aStarted(), 'common', 99);
  await db('call_line').insert({ line: 'common', priority: 2, served: 5_000 });
  const mover = await enter(await aStarted(), 'common', 1);
  expect(await db('queued_call').where(mover).first('place')).toEqual({ place: '5001' });
  await queueCall(db, { ...mover, line: 'own', ...usual });
  expect(await db('queued_call').where(mover).first('line', 'place')).toEqual({ line: 'own', place: '1' });
});

it('a line that is empty for a moment keeps its places', async () => {
  await db('call_line').insert({ line: 'empty', priority: 2, served: 5_000 });
  const trx = await db.transaction();
  const key = { run_id: (await aStarted()).run_id, step_id: 's', item: 1 };
  await trx('step').insert({ ...key, state: 'waiting', awaiting: 'slot' });
  await queueCall(trx, { ...key, line: 'empty', ...usual });
  await readLines(db);
  await trx.commit();
  const next = await enter(await aStarted(), 'empty', 1);
  expect(await db('queued_call').where(next).first('place')).toEqual({ place: '5001' });
  const longAgo = db.raw(`clock_timestamp() - interval '61 minutes'`);
  await db('call_line').where({ line: 'empty' }).update({ served_at: longAgo });
  await readLines(db);
  expect(await db('call_line').where({ line: 'empty' })).toHaveLength(1);
  await db('queued_call').where({ line: 'empty' }).delete();
  await readLines(db);
  expect(await db('call_line').where({ line: 'empty' })).toHaveLength(0);
});

it('the first instance of a project serves its calls that wait for a shared one', async () => {
  const shared = await anInstance(db, { name: 'own', max_concurrency: 1 });
  const run = await aStarted();
  await hold(shared, run.project_id);
  await enter(run, 'own', 1);
  await enter(await aStarted(), 'own', 2);
  await attend();
  expect(await calledOf('own')).toEqual([]);
  const own = { name: 'own', max_concurrency: 5, owner_project: run.project_id, shared_with: [] as never };
  await anInstance(db, own);
  await attend();
  expect(await calledOf('own')).toEqual([1]);
});

it('N5: a call is called ahead for a short instance that it accepts', async () => {
  const slow = { name: 'ahead', max_concurrency: 1, duration_ms: 60_000 };
  const long = await anInstance(db, slow);
  const paid = await anInstance(db, { ...slow, cost_type: 'per_call', rate_usd: 1 });
  const short = await anInstance(db, { name: 'ahead', max_concurrency: 4, duration_ms: 500 });
  const run = await aStarted();
  await hold(long, run.project_id);
  for (let call = 0; call < 4; call++) await hold(short, run.project_id);
  await enter(run, 'ahead', 1, { awaits: long.instance_id, refuses: [paid.instance_id] });
  for (let item = 2; item < 5; item++) await enter(run, 'ahead', item);
  await attend();
  expect(await calledOf('ahead')).toEqual([1, 2, 3, 4]);
});

it('several instances of a host call for its slots once', async () => {
  const { project_id: owner_project } = await aProject(db);
  await joinHost(db, owner_project, { name: 'several', slots: 1 });
  const box = { owner_project, host: 'several', host_slots: 1, takes: 1, max_concurrency: 1 };
  for (let count = 0; count < 5; count++) await anInstance(db, { ...box, name: 'several' });
  const run = await aStarted();
  for (let item = 1; item < 9; item++) await enter(run, 'several', item);
  await attend();
  expect(await calledOf('several')).toEqual([1]);
});

it('lines that share an instance call for its slots once', async () => {
  await anInstance(db, { name: 'shared', max_concurrency: 1, tags: ['local', 'a', 'b'] });
  const run = await aStarted();
  const lines = ['shared', '["shared",null,"a"]', '["shared",null,"b"]'];
  for (const [at, line] of lines.entries()) await enter(run, line, at, { priority: at === 0 ? 1 : 3 });
  await attend();
  expect(await calledOf(...lines)).toEqual([0]);
});

it('an evicted instance holds the slots of its host until its calls end', async () => {
  const { project_id: owner_project } = await aProject(db);
  await joinHost(db, owner_project, { name: 'evicted', slots: 1 });
  const box = { owner_project, host: 'evicted', host_slots: 1, takes: 1, max_concurrency: 1 };
  const dead = await anInstance(db, { ...box, name: 'dead' });
  await hold(dead, owner_project);
  const longAgo = db.raw(`clock_timestamp() - interval '16 minutes'`);
  await db('instance')
    .where({ instance_id: dead.instance_id })
    .update({ state: 'down', down_since: longAgo });
  await anInstance(db, { ...box, name: 'alive' });
  await enter(await aStarted(), 'alive', 1);
  await attend();
  expect(await calledOf('alive')).toEqual([]);
  await db('attempt').where({ instance_id: dead.instance_id }).update({ state: 'released' });
  await attend();
  expect(await calledOf('alive')).toEqual([1]);
});

it('W4: a call lets slots go for its patience, however long none was free in between', async () => {
  const { project_id } = await aProject(db);
  const own = { owner_project: project_id, name: 'lets', affinity: '{{ input.m }}', max_concurrency: 1 };
  const [x, y] = await Promise.all(
    ['x', 'y'].map((key) => anInstance(db, { ...own, resident: [key] } as never)),
  );
  await db('load_time').insert({
    owner_project: project_id,
    name: 'lets',
    key: '',
    warm_ms: 60_000,
    cold_ms: 120_000,
  });
  vi.useFakeTimers({ toFake: ['performance'] });
  const { logger } = aDeliveryCtx(db);
  const poller = createFleetPoller({ db, logger });
  let laterMs = 0;
  const fleet = { ...poller, nowMs: () => poller.nowMs() + laterMs };
  const workflows = { signalWoken: async () => 'sent' as const };
  const look = createDueWork({ ...aDeliveryCtx(db, { workflows } as never), fleet });
  const calledAfter = async (ms: number): Promise<number[]> => {
    laterMs += ms;
    vi.advanceTimersByTime(1_000);
    // Calls of instances have just begun, whenever it is.
    await db('attempt').update({
      started_at: db.raw(`clock_timestamp() + interval '${laterMs} milliseconds'`),
    });
    await look();
    return calledOf('lets');
  };
  await hold(x as never, project_id);
  const run = await aStarted();
  await enter(run, 'lets', 1, { loads: 'x' });
  await enter(run, 'lets', 2, { loads: 'y' });
  expect(await calledAfter(0)).toEqual([2]);
  await db('queued_call').where({ item: 2 }).delete();
  await hold(y as never, project_id);
  expect(await calledAfter(130_000)).toEqual([]);
  await db('attempt').where({ instance_id: y?.instance_id }).update({ state: 'released' });
  expect(await calledAfter(100_000)).toEqual([]);
  expect(await calledAfter(20_000)).toEqual([1]);
});
