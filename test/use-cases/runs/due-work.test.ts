import { describe, expect, it, vi } from 'vitest';
import type { RunWorkflows } from '../../../src/clients/temporal/run-workflows.ts';
import { joinHost } from '../../../src/db/instance/host.ts';
import { finishRun } from '../../../src/db/run/run.ts';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { queueCall } from '../../../src/db/step/call-line.ts';
import { clearWake, listWakes, type WakeRow, wakeScope } from '../../../src/db/step/step-wait.ts';
import { deliverSoon } from '../../../src/parts/delivery/deliveries.ts';
import { createFleetPoller } from '../../../src/parts/fleet/fleet-poller.ts';
import { newId } from '../../../src/parts/ids.ts';
import { closeUnstarted, runControls, runStarts } from '../../../src/use-cases/runs/delivery.ts';
import { createDueWork, watchCapabilities } from '../../../src/use-cases/runs/due-work.ts';
import { createReconcileRuns } from '../../../src/use-cases/runs/repair.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  type RunOverrides,
  settleAttempt,
} from '../../support/factories.ts';
import { untilLocked } from '../../support/locks.ts';
import { isWoken, waitForBudget, waitForCapability } from '../../support/waiting.ts';

const { db } = useDatabase();

/** Temporal as a test wants it, and the messages that it received. */
function aServer(known: Partial<RunWorkflows> = {}) {
  const told: unknown[] = [];
  const workflows: Partial<RunWorkflows> = {
    start: async ({ run_id, plan }, _, control) => void told.push(['start', run_id, plan.reused, control]),
    signalWoken: async (workflowId, woken) => {
      told.push([workflowId, woken]);
      return 'sent';
    },
    signalControl: async ({ run_id }, control) => {
      told.push(['control', run_id, control]);
      return 'sent';
    },
    cancel: async ({ run_id }) => {
      told.push(['cancel', run_id]);
      return 'asked';
    },
    terminate: async ({ run_id }) => {
      told.push(['terminate', run_id]);
      return 'ended';
    },
    ...known,
  };
  const ctx = aDeliveryCtx(db, { workflows });
  const fleet = createFleetPoller({ db, logger: ctx.logger });
  return { told, ctx, fleet, attend: createDueWork({ ...ctx, fleet }) };
}

/** Temporal has its start. */
async function aStartedRun(overrides: RunOverrides = {}) {
  const run = await aRun(db, overrides);
  await db('run').where({ run_id: run.run_id }).update({ start_delivered_at: db.fn.now() });
  return run;
}
function rowOf({ run_id }: { run_id: string }) {
  return db('run').where({ run_id }).first('*');
}
async function away(): Promise<never> {
  throw new Error('Temporal is away');
}

describe('the end of a wait', () => {
  it('is reported to the run once it happened, and again when it is requested again meanwhile', async () => {
    const run = await aStartedRun();
    const scope = `run:${run.run_id}`;
    await waitForBudget(db, run, { step_id: 'a', scope });
    await wakeScope(db, scope);
    const woken = [`trailer/${run.run_id}`, { step_id: 'a', item: 0 }];
    const { told, attend } = aServer();
    expect([await attend(), told]).toEqual([1, [woken]]);
    expect([await attend(), await isWoken(db, run.run_id, 'a')]).toEqual([0, false]);

    await wakeScope(db, scope);
    const slow = aServer({
      signalWoken: async () => {
        await wakeScope(db, scope); // while the message is sent
        return 'sent';
      },
    });
    await slow.attend();
    expect(await isWoken(db, run.run_id, 'a')).toBe(true);
    await aServer().attend();
  });

  it('is not lost when an earlier one is cleared at the same moment', async () => {
    const run = await aStartedRun();
    const scope = `run:${run.run_id}`;
    await waitForBudget(db, run, { step_id: 'a', scope });
    await db.transaction((trx) => wakeScope(trx, scope));
    const [wake] = (await listWakes(db, 100)).filter(({ run_id }) => run_id === run.run_id);
    const clearing = await db.transaction();
    await clearWake(clearing, wake as WakeRow);
    const waking = db.transaction((trx) => wakeScope(trx, scope));
    await Promise.race([waking, untilLocked(db)]);
    await clearing.commit();
    expect([await waking, await isWoken(db, run.run_id, 'a')]).toEqual([1, true]);
    await aServer().attend();
  });

  it('stays while Temporal is away, which holds up nothing for long', async () => {
    const run = await aStartedRun();
    await waitForBudget(db, run, { step_id: 'a', scope: 'global' });
    await wakeScope(db, 'global');
    const { attend } = aServer({ signalWoken: away });
    expect([await attend(), await isWoken(db, run.run_id, 'a')]).toEqual([0, true]);
    expect(await aServer().attend()).toBe(1);
  });
});

it('a parent run receives the end of its child once, also after a failed delivery', async () => {
  const run = await aStartedRun();
  await db('run').where({ run_id: run.run_id }).update({
    parent_workflow_id: 'run/p/parent',
    parent_step_id: 'sub',
    parent_item: 3,
  });
  const { told, attend } = aServer();
  expect([await attend(), told]).toEqual([0, []]);
  await finishRun(db, {
    run_id: run.run_id,
    state: 'failed',
    output: undefined,
    error: null,
    step_ids: [],
  });
  await aServer({ signalWoken: away }).attend();
  expect([await attend(), told]).toEqual([1, [['run/p/parent', { step_id: 'sub', item: 3 }]]]);
  expect([await attend(), told.length]).toEqual([0, 1]);
});

describe('a run that is paused', () => {
  it('before it was started learns of it with its start', async () => {
    const run = await aRun(db);
    await db('run').where({ run_id: run.run_id }).update({ state: 'paused', control_version: 1 });
    const { told, ctx } = aServer();
    await deliverSoon(ctx, runControls, run);
    const control = { version: 1, paused: true, budget_version: 0 };
    expect(told).toEqual([['start', run.run_id, undefined, control]]);
    expect(await rowOf(run)).toMatchObject({ control_delivered: 1 });
  });

  it('while Temporal is away is sent later, with its state at that time', async () => {
    const run = await aStartedRun();
    const change = (control: object) => db('run').where({ run_id: run.run_id }).update(control);
    await change({ state: 'paused', control_version: 1 });
    const lost = aServer({ signalControl: away });
    await deliverSoon(lost.ctx, runControls, run);
    await change({ state: 'running', control_version: 2 });
    const { told, attend } = aServer();
    await attend();
    expect(told).toEqual([['control', run.run_id, { version: 2, paused: false, budget_version: 0 }]]);
    expect(await attend()).toBe(0);
  });
});

describe('a run that is terminated', () => {
  const terminate = (run: { run_id: string; project_id: string }) =>
    requestCancel(db, run, { reason: null, mode: 'terminate' });

  it('is closed by the server when Temporal is back, with what it left open', async () => {
    const run = await aStartedRun();
    await waitForBudget(db, run, { step_id: 'a', scope: `run:${run.run_id}` });
    await terminate(run);
    await aServer({ terminate: away }).attend();
    expect(await rowOf(run)).toMatchObject({ state: 'cancelling' });
    const { told, attend } = aServer();
    await attend();
    expect(told).toEqual([['terminate', run.run_id]]);
    expect(await rowOf(run)).toMatchObject({ state: 'cancelled', error: { code: 'run_cancelled' } });
    const steps = await db('step')
      .where({ run_id: run.run_id })
      .orderBy('step_id')
      .select('state', 'awaiting');
    expect(steps).toEqual(Array.from({ length: 3 }, () => ({ state: 'cancelled', awaiting: null })));
    expect(await db('review').where({ run_id: run.run_id }).first('state')).toEqual({ state: 'cancelled' });
  });

  it('before it was started needs no Temporal, and a running start is undone', async () => {
    const run = await aRun(db);
    const { told, ctx } = aServer({
      start: async ({ run_id }) => {
        await terminate(run);
        await closeUnstarted(ctx, { ...run, run_id });
      },
    });
    await deliverSoon(ctx, runStarts, run);
    expect(await rowOf(run)).toMatchObject({ state: 'cancelled' });
    expect(told).toEqual([['terminate', run.run_id]]);
  });
});

describe('a run whose workflow was ended from outside', () => {
  const closed = (...runIds: string[]): Partial<RunWorkflows> => ({
    listClosed: async function* () {
      yield* runIds;
    },
  });
  const reconcile = (known: Partial<RunWorkflows>) =>
    createReconcileRuns(aDeliveryCtx(db, { workflows: known }));

  it('is closed: failed, or cancelled when that was asked for; others are left alone', async () => {
    const [lost, cancelled, ended, reset] = await Promise.all(Array.from({ length: 4 }, () => aStartedRun()));
    if (!lost || !cancelled || !ended || !reset) throw new Error('four runs');
    const child = await aStartedRun();
    await db('run')
      .where({ run_id: child.run_id })
      .update({ parent_run_id: lost.run_id, ancestors: [lost.run_id] });
    await requestCancel(db, cancelled, { reason: null, mode: 'graceful' });
    await finishRun(db, {
      run_id: ended.run_id,
      state: 'failed',
      output: undefined,
      error: null,
      step_ids: [],
    });
    const run = reconcile({
      ...closed(lost.run_id, cancelled.run_id, ended.run_id, reset.run_id, 'run_unknown'),
      isOpen: async ({ run_id }) => run_id === reset.run_id,
    });
    expect(await run()).toBe(2);
    expect(await rowOf(lost)).toMatchObject({ state: 'failed', error: { code: 'run_terminated' } });
    expect(await rowOf(cancelled)).toMatchObject({ state: 'cancelled' });
    expect([(await rowOf(ended))?.error, (await rowOf(reset))?.finished_at]).toEqual([null, null]);
    expect(await rowOf(child)).toMatchObject({ state: 'cancelling', cancel_mode: 'graceful' });
    expect(await run()).toBe(0);
  });

  it('is looked for since the oldest open run now and then, else since the last look, with a minute more', async () => {
    const since: number[] = [];
    const run = reconcile({
      listClosed: async function* (from) {
        since.push(from.getTime());
        yield* [];
      },
    });
    const row = await aStartedRun();
    await db('run')
      .where({ run_id: row.run_id })
      .update({ start_delivered_at: new Date('2020-01-01') });
    const began = Date.now();
    await run();
    await run();
    expect(since[0]).toBe(Date.parse('2020-01-01') - 60_000);
    expect(since[1]).toBeGreaterThanOrEqual(began - 60_000);
    expect(since[1]).toBeLessThanOrEqual(Date.now() - 60_000);
    vi.setSystemTime(began + 330_000);
    await run();
    await run();
    vi.useRealTimers();
    expect(since.slice(2)).toEqual([since[0], began + 270_000]);
  });
});

it('a step that waits for a capability is woken when an instance of it could take a call', async () => {
  const run = await aStartedRun({ definition: { steps: [{ id: 'a', capability: 'rare' }] } });
  await waitForCapability(db, run, 'a', 'rare');
  const watch = () => watchCapabilities({ db });
  const { instance_id } = await anInstance(db, { name: 'rare', state: 'quarantined' });
  await anInstance(db, { name: 'other' });
  expect([await watch(), await isWoken(db, run.run_id, 'a')]).toEqual([0, false]);
  await db('instance').where({ instance_id }).update({ state: 'up' });
  expect([await watch(), await isWoken(db, run.run_id, 'a')]).toEqual([1, true]);
  expect(await watch()).toBe(0);

  await aServer().attend();
  expect([await watch(), await isWoken(db, run.run_id, 'a')]).toEqual([0, false]); // it may find the instance full
  await waitForCapability(db, run, 'a', 'rare'); // it found none
  expect([await watch(), await isWoken(db, run.run_id, 'a')]).toEqual([1, true]);
});

/** Four calls in the line of each. */
async function queueFour(lines: readonly string[]) {
  const run = await aStartedRun();
  for (const line of lines) {
    for (let item = 1; item <= 4; item++) {
      const key = { run_id: run.run_id, step_id: line, item };
      await db('step').insert({ ...key, state: 'waiting', awaiting: 'slot' });
      await db.transaction((trx) =>
        queueCall(trx, { ...key, line, priority: 2, loads: null, awaits: null, refuses: null, asideMs: [0] }),
      );
    }
  }
  return run;
}

it('a slot that another process has freed is given to the next in line at once', async () => {
  const instance = await anInstance(db, { name: 'freed', max_concurrency: 1 });
  const run = await aStartedRun();
  const claim = aClaim(run, instance);
  await claimAttempt(db, claim);
  await queueFour(['freed']);
  const { fleet, attend } = aServer();
  await fleet.refresh();
  expect([fleet.hasLines(), fleet.roomInLines()]).toEqual([true, 0]);
  const called = () => db('queued_call').where({ line: 'freed' }).whereNotNull('called_at');
  await attend();
  expect(await called()).toEqual([]);
  await settleAttempt(db, anEnd(claim));
  await attend(); // it knows nothing of that yet
  expect(await called()).toHaveLength(1);
  await db('queued_call').where({ line: 'freed' }).delete();
  await fleet.refresh();
  expect([fleet.hasLines(), fleet.roomInLines()]).toEqual([false, 0]);
});

it('N5: hundreds of calls that rather wait for one instance hide no call behind them that takes any', async () => {
  const full = await anInstance(db, { name: 'crowded', max_concurrency: 1 });
  await anInstance(db, { name: 'crowded', cost_type: 'per_call', rate_usd: 1 });
  const run = await aStartedRun();
  await claimAttempt(db, aClaim(run, full));
  const line = { run_id: run.run_id, step_id: 'b' };
  const items = Array.from({ length: 300 }, (_, at) => at + 1);
  const steps = items.map((item) => ({ ...line, item, state: 'waiting', awaiting: 'slot' }));
  const { instance_id: awaits } = full;
  const calls = items.map((item) => ({ ...line, item, line: 'crowded', priority: 2, place: item, awaits }));
  await db('step').insert(steps);
  await db('queued_call').insert(calls);
  await db('queued_call')
    .where({ ...line, item: 300 })
    .update({ awaits: null });
  const { fleet, attend } = aServer();
  await fleet.refresh();
  await attend();
  expect(await db('queued_call').where(line).whereNotNull('called_at').pluck('item')).toEqual([300]);
});

it('lines that share a host call no more than it has, and take turns', async () => {
  const { project_id: owner_project } = await aProject(db);
  await joinHost(db, owner_project, { name: 'gpu-1', slots: 3 });
  const box = { owner_project, host: 'gpu-1', host_slots: 3, takes: 1, max_concurrency: 3 };
  const lines = ['on-host-a', 'on-host-b'];
  for (const name of lines) await anInstance(db, { ...box, name });
  await queueFour(lines);
  const { fleet, attend } = aServer();
  await fleet.refresh();
  const calledOf = async () => {
    const rows = await db('queued_call').whereIn('line', lines).whereNotNull('called_at').pluck('line');
    return lines.map((line) => rows.filter((one) => one === line).length);
  };
  await attend();
  expect(await calledOf()).toEqual([3, 0]);
  await aServer().attend();
  expect(await calledOf()).toEqual([3, 0]); // these are on their way
  await db('queued_call').where({ line: 'on-host-a' }).whereNotNull('called_at').delete();
  await aServer().attend();
  expect(await calledOf()).toEqual([0, 3]);
});

it('a line whose calls take several slots is not passed by smaller ones, unless its runs are paused', async () => {
  const { project_id: owner_project } = await aProject(db);
  await joinHost(db, owner_project, { name: 'gpu-2', slots: 2 });
  const box = { owner_project, host: 'gpu-2', host_slots: 2, max_concurrency: 2 };
  await anInstance(db, { ...box, name: 'large', takes: 2 });
  const small = await anInstance(db, { ...box, name: 'small', takes: 1 });
  const direct = { step: null, is_first: true, key: newId('call') };
  await claimAttempt(db, aClaim({ run_id: '', project_id: owner_project }, small, direct));
  const run = await queueFour(['large']);
  await queueFour(['small']);
  const { fleet, attend } = aServer();
  await fleet.refresh();
  const called = () =>
    db('queued_call').whereIn('line', ['large', 'small']).whereNotNull('called_at').pluck('line');
  await attend();
  expect(await called()).toEqual([]);
  await db('run').where({ run_id: run.run_id }).update({ state: 'paused' });
  await aServer().attend();
  expect(await called()).toEqual(['small']);
});
