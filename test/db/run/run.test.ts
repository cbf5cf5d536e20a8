import { describe, expect, it } from 'vitest';

import { countReruns, finishRun, openRun, type RunEnd } from '../../../src/db/run/run.ts';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { listUndeliveredCancels, markCancelDelivered } from '../../../src/db/run/run-delivery.ts';
import { endStep, readStepOutput } from '../../../src/db/step/step.ts';
import { keepWaiting } from '../../../src/db/step/step-progress.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aRun,
  claimAttempt,
  type StoredRun,
  settleAttempt,
} from '../../support/factories.ts';

const { db } = useDatabase(8);

const failure = { code: 'step_failed', message: 'step b: gone' };

function endOf(run: StoredRun, end: Partial<RunEnd>): RunEnd {
  return {
    run_id: run.run_id,
    state: 'failed',
    output: undefined,
    error: failure,
    step_ids: run.definition.steps.map(({ id }) => id),
    ...end,
  };
}

async function eventsOf({ run_id }: StoredRun): Promise<string[]> {
  const rows = await db('event').where({ run_id }).orderBy(['xid', 'id']).select('type', 'step_id', 'item');
  return rows.map(({ type, step_id, item }) =>
    [type, step_id, item].filter((part) => part !== null).join(' '),
  );
}

async function stepsOf({ run_id }: StoredRun): Promise<string[]> {
  const rows = await db('step').where({ run_id }).orderBy('step_id').select('step_id', 'state');
  return rows.map(({ step_id, state }) => `${step_id} ${state}`);
}

/** Step a has succeeded, b is running, c has not begun. */
async function aRunningRun() {
  const [run, instance] = [await aRun(db), await anInstance(db)];
  await openRun(db, run.run_id);
  const first = aClaim(run, instance);
  await claimAttempt(db, first);
  await settleAttempt(db, anEnd(first));
  const running = aClaim(run, instance, { step_id: 'b', reserved_nano: 4n });
  await claimAttempt(db, running);
  const events = await eventsOf(run);
  return { run, instance, running, newEvents: async () => (await eventsOf(run)).slice(events.length) };
}

describe('finishRun', () => {
  it.each([
    ['failed', 'skipped'],
    ['cancelled', 'cancelled'],
  ] as const)(
    'of a run that %s cancels what had begun, ends the rest as %s and closes the log',
    async (state, left) => {
      const { run, newEvents } = await aRunningRun();
      await finishRun(db, endOf(run, { state }));
      expect(await stepsOf(run)).toEqual(['a succeeded', 'b cancelled', `c ${left}`]);
      expect(await newEvents()).toEqual(['step.cancelled b', `step.${left} c`, `run.${state}`]);
      const row = await db('run')
        .where({ run_id: run.run_id })
        .first('state', 'error', 'output', 'finished_at');
      expect(row).toEqual({ state, error: failure, output: null, finished_at: expect.any(Date) });
    },
  );

  it('of a run that succeeded keeps the text of its output, and adds the steps it left out', async () => {
    const { run, newEvents } = await aRunningRun();
    const output = { z: 'a\u0000b', a: { y: null, b: [] } };
    await finishRun(db, endOf(run, { state: 'succeeded', error: null, output, step_ids: ['a', 'c'] }));
    expect(await newEvents()).toEqual(['step.cancelled b', 'step.skipped c', 'run.succeeded']);
    const row = await db('run').where({ run_id: run.run_id }).first('output');
    expect(JSON.stringify(row?.output)).toBe(JSON.stringify(output));
  });

  it.each([
    ['keeps what has become of its items, when it succeeded', 'succeeded', { succeeded: 2, failed: 1 }],
    ['counts no items, when it failed', 'failed', null],
  ] as const)('%s', async (_, state, counts) => {
    const { run } = await aRunningRun();
    const rows = ['succeeded', 'failed', 'succeeded'].map((of, at) => ({
      run_id: run.run_id,
      step_id: 'a',
      item: at + 1,
      state: of,
    }));
    await db('step').insert(rows);
    await finishRun(db, endOf(run, { state }));
    const row = await db('run').where({ run_id: run.run_id }).first('item_counts');
    expect(row?.item_counts).toEqual(counts);
  });

  it('happens once', async () => {
    const { run, newEvents } = await aRunningRun();
    const ends = [endOf(run, {}), endOf(run, { state: 'cancelled' }), endOf(run, { state: 'succeeded' })];
    await Promise.all([...ends, ...ends].map((end) => finishRun(db, end)));
    const closing = (await newEvents()).filter((event) => event.startsWith('run.'));
    expect(closing).toHaveLength(1);
    const row = await db('run').where({ run_id: run.run_id }).first('state');
    expect(closing).toEqual([`run.${row?.state}`]);
  });

  it('accepts the cost of a late answer but not its step, and refuses later claims', async () => {
    const { run, instance, running, newEvents } = await aRunningRun();
    await finishRun(db, endOf(run, { state: 'cancelled', error: null }));
    const log = await newEvents();
    expect(await settleAttempt(db, anEnd(running, { settled_nano: 2n }))).toBe(true);
    expect((await claimAttempt(db, aClaim(run, instance, { step_id: 'c' }))).outcome).toBe('closed');
    expect(await stepsOf(run)).toEqual(['a succeeded', 'b cancelled', 'c cancelled']);
    expect(await newEvents()).toEqual(log);
    expect(await readStepOutput(db, { run_id: run.run_id, step_id: 'b', item: 0 })).toBeUndefined();
    const entries = await db('ledger_entry').where({ attempt_id: running.attempt_id, kind: 'settle' });
    expect(entries).toMatchObject([{ amount_nano: '2', certainty: 'exact' }]);
  });
});

describe('finishRun of a run with items and child runs', () => {
  const wait = { awaiting: 'time', until: null, for_ms: 1_000, begins: true } as const;

  it.each(['failed', 'cancelled', 'succeeded'] as const)('that has %s leaves nothing open', async (state) => {
    const { run, newEvents } = await aRunningRun();
    const { run_id, project_id } = run;
    for (const item of [2, 10]) await keepWaiting(db, { run_id, step_id: 'c', item, revision: 0 }, wait);
    const open = await aRun(db, { project_id, parent_run_id: run_id, parent_step_id: 'c', parent_item: 2 });
    const done = await aRun(db, { project_id, parent_run_id: run_id, parent_step_id: 'c', parent_item: 3 });
    const other = await aRun(db, { project_id });
    await finishRun(db, endOf(done, { state: 'succeeded', error: null }));
    const left = state === 'cancelled' ? 'cancelled' : 'skipped';
    await finishRun(db, endOf(run, { state }));
    expect((await newEvents()).slice(-5)).toEqual([
      ...['step.cancelled c 2', 'step.cancelled c 10', 'step.cancelled b', `step.${left} c`, `run.${state}`],
    ]);
    const rows = await db('step')
      .where({ run_id })
      .whereIn('state', ['cancelled', left])
      .select('awaiting', 'wait_until', 'finished_at');
    expect(rows).toHaveLength(4);
    expect(rows).toContainEqual({ awaiting: null, wait_until: null, finished_at: expect.any(Date) });
    const states = await Promise.all(
      [open, done, other].map(
        async (child) => (await db('run').where({ run_id: child.run_id }).first('state'))?.state,
      ),
    );
    expect(states).toEqual(['cancelling', 'succeeded', 'queued']);
    expect(
      await db('run').where({ run_id: open.run_id }).first('cancel_mode', 'cancel_requested_at'),
    ).toEqual({
      cancel_mode: 'graceful',
      cancel_requested_at: expect.any(Date),
    });
    expect(await eventsOf(open)).toEqual(['run.queued', 'run.cancelling']);
  });
});

it('a run counts the runs that it repeats, one after the other', async () => {
  const first = await aRun(db);
  const second = await aRun(db, { project_id: first.project_id, rerun_of: first.run_id });
  const third = await aRun(db, { project_id: first.project_id, rerun_of: second.run_id });
  await aRun(db, { project_id: first.project_id, rerun_of: first.run_id });
  const counts = [first, second, third].map(({ run_id }) => countReruns(db, run_id));
  expect(await Promise.all(counts)).toEqual([0, 1, 2]);
});

describe('openRun', () => {
  it('marks a run as running once, however many workers open it', async () => {
    const run = await aRun(db, { job: { z: 1, a: 2 } });
    const opened = await Promise.all(Array.from({ length: 8 }, () => openRun(db, run.run_id)));
    for (const row of opened) expect(row).toMatchObject({ run_id: run.run_id, definition: run.definition });
    expect(JSON.stringify(opened[0]?.job)).toBe('{"z":1,"a":2}');
    expect(await eventsOf(run)).toEqual(['run.queued', 'run.started']);
    expect(await openRun(db, 'none')).toBeUndefined();
  });

  it('does not revive a run that is being cancelled', async () => {
    const run = await aRun(db);
    const graceful = { reason: 'not needed', mode: 'graceful' } as const;
    expect(await requestCancel(db, { ...run, project_id: 'another' }, graceful)).toBe(false);
    expect(await requestCancel(db, run, graceful)).toBe(true);
    expect(await requestCancel(db, run, graceful)).toBe(false);
    await openRun(db, run.run_id);
    expect(await eventsOf(run)).toEqual(['run.queued', 'run.cancelling']);
    await finishRun(db, endOf(run, { state: 'cancelled', error: null }));
    expect(await requestCancel(db, run, { ...graceful, mode: 'terminate' })).toBe(false);
  });
});

describe('endStep', () => {
  const error = { code: 'step_timeout', message: 'late, with \u0000' };
  const end = ({ run_id }: StoredRun, step_id: string, state: 'failed' | 'cancelled' = 'failed') =>
    endStep(db, { run_id, step_id, item: 0, revision: 0 }, { state, error });

  it('ends a step that never began, and one that is running, once', async () => {
    const { run, newEvents } = await aRunningRun();
    for (const step of ['b', 'c', 'b', 'c']) await end(run, step);
    expect(await stepsOf(run)).toEqual(['a succeeded', 'b failed', 'c failed']);
    expect(await newEvents()).toEqual(['step.failed b', 'step.failed c']);
    const row = await db('step').where({ run_id: run.run_id, step_id: 'b' }).first('error');
    expect(row?.error).toEqual({ code: 'step_timeout', message: 'late, with \ufffd' });
  });

  it('does not overwrite a step that has ended', async () => {
    const { run, newEvents } = await aRunningRun();
    await end(run, 'a', 'cancelled');
    expect(await stepsOf(run)).toEqual(['a succeeded', 'b running']);
    expect(await newEvents()).toEqual([]);
    expect(await readStepOutput(db, { run_id: run.run_id, step_id: 'a', item: 0 })).toEqual({
      path: 'media://out.mp4',
    });
  });
});

it('a cancel that became a harder one while it was delivered is delivered again', async () => {
  const { run } = await aRunningRun();
  const ask = (mode: 'graceful' | 'terminate') => requestCancel(db, run, { reason: null, mode });
  await ask('graceful');
  await ask('terminate');
  await markCancelDelivered(db, run.run_id, 'graceful');
  await db('run').where({ run_id: run.run_id }).update({ start_delivered_at: db.fn.now() });
  expect(await listUndeliveredCancels(db, 10)).toContain(run.run_id);
  await markCancelDelivered(db, run.run_id, 'terminate');
  expect(await listUndeliveredCancels(db, 10)).not.toContain(run.run_id);
});
