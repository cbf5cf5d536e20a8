import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { afterAll, expect, it } from 'vitest';
import { pauseRun, resumeRun } from '../../../src/db/run/run-control.ts';
import { callNext, queueCall, readLines } from '../../../src/db/step/call-line.ts';
import { createDueWork } from '../../../src/use-cases/runs/due-work.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aRun, type RunOverrides } from '../../support/factories.ts';
import { echo, type Handler, type InstanceOptions } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();
const { db } = world;

/** Answers the calls that hold the slots. */
const answers: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(answers.map((answer) => answer())));

/** An instance with one slot, whose call is open until it is answered. */
async function aFullInstance(name: string, options: Partial<InstanceOptions> = {}) {
  const open: (() => void)[] = [];
  const handle: Handler = (exec, response) => void open.push(() => echo(exec, response));
  const instance = await world.register({ name, max_concurrency: 1, ...options });
  instance.handle = handle;
  const run = await aRun(db, stepsOf([{ id: 'first', capability: name }]));
  const held = world.newWorker().execute(run, 'first');
  await waitFor('the call to arrive', () => open.length > 0);
  const answer = async (): Promise<void> => {
    for (const reply of open.splice(0)) reply();
    await held;
  };
  answers.push(answer);
  return { answer, open };
}

/** `step` once per run, as `a`. */
async function runsOf(
  name: string,
  count: number,
  step: Partial<StepDefinition> = {},
  run: RunOverrides = {},
) {
  return Promise.all(
    Array.from({ length: count }, () =>
      aRun(db, { ...stepsOf([{ id: 'a', capability: name, ...step }]), ...run }),
    ),
  );
}

async function lineOf(name: string) {
  const rows = await db('queued_call').where({ line: name }).orderBy(['priority', 'place', 'queued_at']);
  return rows.map(({ run_id, step_id, item }) => `${run_id} ${step_id} ${item}`);
}

it.concurrent('a call without a slot waits in line as a row, and its wait takes no time from the step', async () => {
  await aFullInstance('full-one');
  const [run] = await runsOf('full-one', 1);
  const begunMs = Date.now();
  const end = await world.newWorker().execute(run as never, { step_id: 'a', remainingMs: 60_000 });
  const wholeMs = Date.now() - begunMs; // two seconds of it in the line
  expect(end).toMatchObject({ kind: 'waiting', awaiting: 'slot', until: null, leftMs: expect.any(Number) });
  const { leftMs = 0 } = end as { readonly leftMs?: number };
  expect(leftMs).toBeGreaterThan(60_000 - wholeMs + 1_500);
  expect(await db('step').where({ run_id: run?.run_id, step_id: 'a' }).first('state', 'awaiting')).toEqual({
    state: 'waiting',
    awaiting: 'slot',
  });
  expect(await lineOf('full-one')).toEqual([`${run?.run_id} a 0`]);
});

it.concurrent('behind a line, a call takes no slot before it was called; then it does, also with little time left', async () => {
  const isPlain = {
    line: 'full-two',
    has_keys: false,
    since_turn_ms: { 2: expect.any(Number) },
    awaited: [],
  };
  const { answer, open } = await aFullInstance('full-two');
  const [first, second] = await runsOf('full-two', 2);
  await world.newWorker().execute(first as never, 'a');
  await world.fleet().refresh();
  await answer();
  await world.fleet().refresh();
  const barging = await world.newWorker().execute(second as never, 'a');
  expect(barging).toMatchObject({ kind: 'waiting', awaiting: 'slot' });
  expect(await callNext(db, 'full-two', 1)).toBe(1);
  expect(await readLines(db)).toContainEqual({ ...isPlain, waiting: 1, called: 1 });
  const called = world
    .newWorker()
    .execute(first as never, { step_id: 'a', resumed: true, remainingMs: 5_000 });
  await waitFor('the call to arrive', () => open.length > 0);
  open.pop()?.();
  expect(await called).toMatchObject({ kind: 'succeeded' });
  expect(await readLines(db)).toContainEqual({ ...isPlain, waiting: 1, called: 0 });
});

it.concurrent('calls of one run that come to the line at once have places of their own, and a new run the next but one', async () => {
  const line = 'at-once';
  const items = Array.from({ length: 24 }, (_, at) => at + 1);
  const [large, small] = await runsOf(line, 2, { for_each: { items } });
  const enter = async (run: { readonly run_id: string } | undefined, item: number): Promise<void> => {
    const key = { run_id: run?.run_id ?? '', step_id: 'a', item };
    await db('step').insert({ ...key, state: 'waiting', awaiting: 'slot' });
    await db.transaction((trx) =>
      queueCall(trx, { ...key, line, priority: 2, loads: null, awaits: null, refuses: null, asideMs: [0] }),
    );
  };
  await Promise.all(items.map((item) => enter(large, item)));
  const places = await db('queued_call').where({ line }).orderBy('place').select('place');
  expect(places.map(({ place }) => Number(place))).toEqual(items);
  await callNext(db, line, 5);
  await enter(small, 1);
  await callNext(db, line, 2);
  expect(await db('queued_call').where({ line, run_id: small?.run_id }).first('called_at')).toEqual({
    called_at: expect.any(Date),
  });
});

it.concurrent('runs take turns; within a run the oldest goes first, and a higher priority before all', async () => {
  await aFullInstance('turns');
  const worker = world.newWorker();
  const each = { for_each: { items: [1, 2, 3, 4] } };
  const [large, small] = [...(await runsOf('turns', 1, each)), ...(await runsOf('turns', 1, each))];
  const [urgent] = await runsOf('turns', 1, {}, { priority: 'interactive' });
  const enter = async (run: unknown, items: readonly number[]) => {
    for (const item of items)
      await db('step').insert({
        run_id: (run as { run_id: string }).run_id,
        step_id: 'a',
        item,
        state: 'running',
      });
    for (const item of items) await worker.execute(run as never, { step_id: 'a', item, again: true });
  };
  await enter(large, [1, 2, 3]);
  await enter(small, [1]);
  await enter(urgent, [0]);
  await world.fleet().refresh();
  const called: string[] = [];
  for (let turn = 0; turn < 5; turn++) {
    await callNext(db, 'turns', 1);
    const rows = await db('queued_call')
      .where({ line: 'turns' })
      .whereNotNull('called_at')
      .orderBy('called_at');
    for (const { run_id, item } of rows) {
      const who = run_id === large?.run_id ? 'large' : run_id === small?.run_id ? 'small' : 'urgent';
      if (!called.includes(`${who} ${item}`)) called.push(`${who} ${item}`);
    }
  }
  expect(called).toEqual(['urgent 0', 'large 1', 'small 1', 'large 2', 'large 3']);
});

it.concurrent('a paused run keeps its place, is not called, and no queue_timeout runs on', async () => {
  await aFullInstance('pausing');
  const [run, other] = await runsOf('pausing', 2, { queue_timeout: '1h' });
  for (const one of [run, other]) await world.newWorker().execute(one as never, 'a');
  const key = { run_id: run?.run_id ?? '', project_id: run?.project_id ?? '' };
  expect(await pauseRun(db, key)).toBe(true);
  expect(await callNext(db, 'pausing', 5)).toBe(1);
  const before = await db('step').where({ run_id: key.run_id }).first('wait_until');
  await db('run')
    .where({ run_id: key.run_id })
    .update({ paused_at: db.raw(`clock_timestamp() - interval '1 h'`) });
  await db('step')
    .where({ run_id: key.run_id })
    .update({ wait_since: db.raw(`clock_timestamp() - interval '2 h'`) });
  expect(await resumeRun(db, key)).toBe(true);
  const after = await db('step').where({ run_id: key.run_id }).first('wait_until');
  expect(after?.wait_until.getTime() - before?.wait_until.getTime()).toBeGreaterThanOrEqual(3_600_000);
  expect(await callNext(db, 'pausing', 5)).toBe(1);
});

it.concurrent('queue_timeout ends the wait: the error reports how long, behind how many calls, on which instances', async () => {
  await aFullInstance('impatient');
  const [before, run] = [
    ...(await runsOf('impatient', 1)),
    ...(await runsOf('impatient', 1, { queue_timeout: '1h' })),
  ];
  await world.newWorker().execute(before as never, 'a');
  const waiting = await world.newWorker().execute(run as never, 'a');
  expect(waiting).toMatchObject({ kind: 'waiting', awaiting: 'slot', until: expect.any(Date) });
  await db('step')
    .where({ run_id: run?.run_id })
    .update({ wait_until: db.raw(`clock_timestamp() - interval '1 s'`) });
  await db('queued_call')
    .where({ line: 'impatient' })
    .update({ queued_at: db.raw(`clock_timestamp() - interval '1 h'`) });
  const end = await world.newWorker().execute(run as never, { step_id: 'a', resumed: true });
  expect(end).toMatchObject({
    kind: 'failed',
    error: {
      code: 'queue_timeout',
      message: expect.stringMatching(
        /^waited 1 h for a free slot of impatient, behind 1 other call, on http:\S+; queue_timeout is 1h$/,
      ),
      details: { ahead: 1 },
    },
  });
  const length = {
    line: 'impatient',
    waiting: 1,
    called: 0,
    has_keys: false,
    awaited: [],
    since_turn_ms: {},
  };
  expect(await readLines(db)).toContainEqual(length);
});

it.concurrent('a line is one of a capability, a version range and tags', async () => {
  await aFullInstance('routed');
  const [plain, tagged] = [
    ...(await runsOf('routed', 1)),
    ...(await runsOf('routed', 1, { tags: ['local'] })),
  ];
  for (const one of [plain, tagged]) await world.newWorker().execute(one as never, 'a');
  expect((await readLines(db)).map(({ line }) => line)).toEqual(
    expect.arrayContaining(['routed', '["routed",null,"local"]']),
  );
});

async function calledOf(line: string): Promise<number> {
  const rows = await db('queued_call').where({ line }).whereNotNull('called_at').select('run_id');
  return rows.length;
}

it.concurrent('N5: calls that rather wait for a free instance are not called for one that costs', async () => {
  const name = 'free-or-paid';
  const { answer } = await aFullInstance(name);
  const hosted = { type: 'per_call', rate_usd: 1 };
  const paid = await world.register({ name, max_concurrency: 10, cost_model: hosted, tags: [] });
  const dueWork = () => createDueWork({ ...aDeliveryCtx(db), fleet: world.fleet() })();
  await waitFor('both', async () => {
    await world.fleet().refresh();
    return world.fleet().all(name).length === 2;
  });
  const runs = await runsOf(name, 3, {}, { priority: 'batch' });
  for (const run of runs)
    expect(await world.newWorker().execute(run as never, 'a')).toMatchObject({ awaiting: 'slot' });
  const [awaited] = world.fleet().all(name);
  expect(await db('queued_call').where({ line: name }).distinct().pluck('awaits')).toEqual([
    awaited?.instance_id,
  ]);
  await dueWork();
  expect(await calledOf(name)).toBe(0);

  const [bold] = await runsOf(name, 1, {}, { priority: 'interactive' }); // its time is worth a dollar
  await db('instance').where({ name, cost_type: 'free' }).update({ duration_ms: 1_000_000 });
  await world.fleet().refresh();
  const ended = world.newWorker().execute(bold as never, 'a');
  expect(await ended).toMatchObject({ kind: 'succeeded' });
  expect(paid.execs).toHaveLength(1);

  await answer();
  await dueWork();
  expect(await calledOf(name)).toBe(1); // for the free one, and no more
  const ago = db.raw(`clock_timestamp() - interval '2 minutes'`);
  await db('queued_call').where({ line: name }).update({ queued_at: ago });
  await dueWork();
  expect(await calledOf(name)).toBe(3); // what they would take may have changed
});

it.concurrent('N5: what a call refuses is judged as when it is called, not by how many wait in line', async () => {
  const name = 'worth-ten-cents';
  await aFullInstance(name);
  await world.register({ name, cost_model: { type: 'per_call', rate_usd: 0.1 }, tags: [] });
  await waitFor('both', async () => {
    await world.fleet().refresh();
    return world.fleet().all(name).length === 2;
  });
  await db('instance').where({ name }).update({ duration_ms: 20_000 });
  await world.fleet().refresh();
  const [full, hosted] = world.fleet().all(name);
  const runs = await runsOf(name, 6);
  for (const run of runs)
    expect(await world.newWorker().execute(run as never, 'a')).toMatchObject({ awaiting: 'slot' });
  const refusals = await db('queued_call').where({ line: name }).select('awaits', 'refuses');
  expect(refusals).toEqual(runs.map(() => ({ awaits: full?.instance_id, refuses: [hosted?.instance_id] })));
});

/** @returns whether a call came past another one, which still waited in its process; each waits there for two seconds */
async function passesAnother(name: string): Promise<boolean> {
  const special = await world.register({ name, max_concurrency: 1, tags: ['special'] });
  const open: (() => void)[] = [];
  special.handle = (exec, response) => void open.push(() => echo(exec, response));
  const [holder, picky] = await runsOf(name, 2, { tags: ['special'] });
  const held = world.newWorker().execute(holder as never, 'a');
  await waitFor('the call to arrive', () => open.length === 1);
  const { answer, open: arrived } = await aFullInstance(name, { tags: [] });
  const worker = world.newWorker();
  const left: string[] = [];
  const executeIn = (run: unknown, who: string) =>
    worker.execute(run as never, 'a').finally(() => left.push(who));
  const waiting = executeIn(picky, 'the other');
  const [run] = await runsOf(name, 1);
  const ended = executeIn(run, 'the call');
  await answer();
  await waitFor('the next call', () => arrived.length === 1 || left.includes('the call'));
  const hasPassed = left.length === 0;
  await answer();
  special.handle = echo;
  for (const reply of open.splice(0)) reply();
  const ends = await Promise.all([held, waiting, ended]);
  return hasPassed && ends.every(({ kind }) => kind === 'succeeded');
}

it.concurrent('a call does not wait behind one in its process that wants another slot', async () => {
  let tries = 0; // a slow machine may take longer than the two seconds
  await waitFor('a call that passes another', () => {
    tries += 1;
    return passesAnother(`other-slot-${tries}`);
  });
});
