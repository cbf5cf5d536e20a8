/** The effects of people, money and clocks on a run in the middle of a batch of short steps, with two workers. */

import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { BulkAnswer } from '@capstan/core/contracts/run-control';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type AddedWorker, type Capstan, startCapstan } from '../support/capstan.ts';
import { watchCommits } from '../support/commit-watch.ts';
import { type Exec, echo, type Instance, startInstance } from '../support/fleet.ts';
import { findViolations } from '../support/invariants.ts';
import { findLeftovers } from '../support/leftovers.ts';
import { isLong } from '../support/long.ts';
import { findRepeats } from '../support/short-load.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

interface SeenExec extends Exec {
  readonly at: number;
}

/** Activities that a worker carries out at once: few, so that some of a batch's calls are asked for late or never. */
const slots = 4;

let capstan: Capstan;
let another: AddedWorker;
let db: Db;
let temporal: TestWorkflowEnvironment;
let instance: Instance;
/** With the moment of their arrival. */
const seen: SeenExec[] = [];
/** Calls with `hold` in their input. */
const held: { readonly exec: Exec; readonly answer: () => void }[] = [];

beforeAll(async () => {
  capstan = await startCapstan({
    LEASE_MS: '27000', // longer than one worker sleeps while another one starts
    HEARTBEAT_INTERVAL_MS: '500',
    HEARTBEAT_TIMEOUT_MS: '10000', // what a starved machine has lost on the way to a worker comes again within a test
    ACTIVITY_SLOTS: `${slots}`,
  });
  db = connectDatabase(capstan.databaseUrl, 2);
  await watchCommits(db);
  const cost_model = { type: 'per_call', rate_usd: 0.1 };
  instance = await startInstance(capstan, { name: 'brief', cost_model, max_concurrency: 200 });
  instance.handle = (exec, response) => {
    seen.push(Object.assign(exec, { at: performance.now() }));
    if (exec.input.hold === true) held.push({ exec, answer: () => void echo(exec, response) });
    else setTimeout(() => echo(exec, response), Number(exec.input.takes_ms ?? 5));
  };
  [another, temporal] = await Promise.all([capstan.addWorker(), connectTestEnvironment()]);
  // The first calls of a worker take longest.
  const first = await Promise.all([0, 1].map(() => capstan.submit(sideBySide(20, {}))));
  await Promise.all(first.map(({ run_id }) => capstan.ended(run_id)));
}, 240_000);
beforeEach(() => {
  seen.length = 0;
  held.length = 0;
});
afterAll(async () => {
  await temporal?.teardown();
  await instance?.stop();
  await db?.destroy();
  await capstan?.stop();
});

function step(id: string, more: object = {}) {
  return { id, capability: 'brief', dispatch: 'inline', escalate: { enabled: false }, ...more };
}
function sideBySide(count: number, input: object) {
  return Array.from({ length: count }, (_, at) => step(`s${at}`, { input }));
}
function callsOf(who: string): SeenExec[] {
  return seen.filter(({ input }) => input.who === who);
}
async function post(runId: string, what: string, body: object = {}): Promise<void> {
  const { status } = await capstan.request('POST', `/v1/runs/${runId}/${what}`, body);
  expect(status).toBeLessThan(300);
}

/** Nothing is open, and each call without a lost worker was made once. */
async function checkRows(): Promise<void> {
  await waitFor('nothing to be left', async () => (await findLeftovers(db)).length === 0).catch(async () =>
    expect(await findLeftovers(db)).toEqual([]),
  );
  expect(await findRepeats(db, instance)).toEqual([]);
  expect(await findViolations(db, [])).toEqual([]);
}

/** Each takes long enough for a pause to come before the last, however slowly it is asked for. */
const units = 100;

/** One after the other; every second one may be left out, so that it is decided on before it goes. */
function chainOf(who: string) {
  return Array.from({ length: units }, (_, at) =>
    step(`s${at}`, {
      depends_on: at === 0 ? [] : [`s${at - 1}`],
      ...(at % 2 === 0 ? {} : { when: 'job.yes' }),
      input: { who, at, takes_ms: 25 },
    }),
  );
}

/** So many at a time; the running ones end when the run is paused. */
function itemsOf(who: string) {
  const items = Array.from({ length: units }, (_, at) => at);
  return [
    step('each', { for_each: { items, max_parallel: 10 }, input: { who, at: '{{ item }}', takes_ms: 150 } }),
  ];
}

/**
 * Paused after so many calls: nothing is cut, and in the end each was made; `checkRows` finds a repeated one that no
 * worker has lost. It is paused when no call has come for a while; the machine decides how soon that is.
 */
async function pauseAfter(calls: number, steps: (who: string) => object[]): Promise<void> {
  const who = `${steps.name}, paused after ${calls}`;
  const { run_id } = await capstan.submit(steps(who), { yes: true });
  await waitFor('its moment', () => callsOf(who).length >= calls);
  await post(run_id, 'pause');
  const pausedAt = performance.now();
  const lastAt = (): number => callsOf(who).at(-1)?.at ?? pausedAt;
  await waitFor('it to stand', () => performance.now() > Math.max(pausedAt, lastAt()) + 1_500);
  expect(callsOf(who).length).toBeLessThan(units);
  await post(run_id, 'resume');
  const { state } = await capstan.ended(run_id);
  expect({ who, state }).toEqual({ who, state: 'succeeded' });
  const cut = db('attempt').where({ run_id }).whereRaw("error->>'code' = 'run_cancelled'");
  expect({ who, cut: await cut.select('key', 'state', 'duration_ms') }).toEqual({ who, cut: [] });
  const called = new Set(callsOf(who).map(({ input }) => Number(input.at)));
  expect([...called].sort((a, b) => a - b)).toEqual(Array.from({ length: units }, (_, at) => at));
}

test('a pause is noticed in the middle of batches, and after it nothing is repeated', async () => {
  const varied = isLong ? [pauseAfter(1, chainOf)] : [];
  await Promise.all([...varied, pauseAfter(15, chainOf), pauseAfter(40, itemsOf)]);
  await checkRows();
});

/** Cancelled so long after its first call has arrived. */
async function cancelAfter(ms: number): Promise<{ readonly run: Run; readonly calls: readonly Exec[] }> {
  const who = `cancelled after ${ms}`;
  const { run_id } = await capstan.submit(sideBySide(8, { who, hold: true }));
  await waitFor('its calls', () => callsOf(who).length > 0);
  const at = performance.now() + ms;
  await waitFor('its moment', () => performance.now() >= at);
  await post(run_id, 'cancel');
  return { run: await capstan.ended(run_id), calls: callsOf(who) };
}

test('a cancel ends the calls of a batch, also those that continue, in whichever worker', async () => {
  const moments = Array.from({ length: isLong ? 12 : 2 }, (_, at) => at * (isLong ? 40 : 120));
  const ended = await Promise.all(moments.map(cancelAfter));
  expect(ended.map(({ run }) => run.state)).toEqual(moments.map(() => 'cancelled'));
  const openAfter = (): number[] =>
    moments.filter((_, at) => ended[at]?.calls.some(({ closed }) => !closed) === true);
  await waitFor('the calls to be closed', () => openAfter().length === 0).catch(() =>
    expect(openAfter()).toEqual([]),
  );
  await checkRows();
});

test('a budget that runs out in a batch asks once; after a raise nothing is paid twice', async () => {
  const steps = sideBySide(12, { who: 'poor' });
  const { run_id } = await capstan.submit(steps, {}, { budget_ceiling_usd: 0.55 });
  await waitFor('all others to wait', async () => {
    const rows = await db('step').where({ run_id }).select('state');
    return rows.length === 12 && rows.every(({ state }) => ['succeeded', 'waiting'].includes(state));
  });
  expect(callsOf('poor')).toHaveLength(5);
  const path = `/v1/reviews?run_id=${run_id}&kind=budget`;
  const { body } = await capstan.request<{ items: Review[] }>('GET', path);
  expect(body.items).toHaveLength(1);
  await post(run_id, 'budget', { budget_ceiling_usd: 5 });
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', cost_usd: 1.2 });
  expect(callsOf('poor')).toHaveLength(12);
  await checkRows();
});

test('runs of a batch, with child runs and reruns, together never pay more than their budget', async () => {
  const child = { pipeline: 'of-batch', version: '1', steps: [step('c', { input: { who: 'batch' } })] };
  await capstan.request('POST', '/v1/pipelines', child);
  const steps = [
    step('a', { input: { who: 'batch' } }),
    { id: 'b', pipeline: 'of-batch@1', depends_on: ['a'], input: {} },
  ];
  const definition = { pipeline: 'batch', version: '1', steps };
  const runs = Array.from({ length: 4 }, () => ({ definition }));
  const { body } = await capstan.request<BulkAnswer>('POST', '/v1/runs/bulk', { runs, budget_all_usd: 0.45 });
  expect(body).toMatchObject({ items: runs.map(() => ({ status: 202 })) });
  const ids = body.items.map(({ run_id = '' }) => run_id);
  const scope = `label:batch=${body.batch}`;
  const row = () => db('budget').whereLike('scope', `%:total:${scope}`).first();
  const path = '/v1/reviews?kind=budget&state=open';
  await waitFor('the others to wait', async () => {
    const waiting = await db('step').where({ state: 'waiting', awaiting: 'budget' });
    return waiting.length === 4 && (await row())?.spent_nano === '400000000';
  });
  expect(callsOf('batch')).toHaveLength(4);
  const { body: open } = await capstan.request<{ items: Review[] }>('GET', path);
  expect(open.items.map(({ reason }) => reason)).toEqual([expect.stringContaining(`${scope} in total`)]);
  expect(open.items[0]?.reason).not.toContain('resets');
  const raise = { limit_usd: 0.85, period: 'total' };
  await capstan.request('PUT', `/v1/budgets/scoped/${encodeURIComponent(scope)}`, raise);
  for (const id of ids) expect(await capstan.ended(id)).toMatchObject({ state: 'succeeded' });
  expect(await row()).toMatchObject({ spent_nano: '800000000', reserved_nano: '0' });
  const { body: again } = await capstan.request<Run>('POST', `/v1/runs/${ids[0]}/rerun`, {});
  await waitFor('the rerun to wait', () =>
    db('step').where({ run_id: again.run_id, state: 'waiting', awaiting: 'budget' }).first(),
  );
  await capstan.request('DELETE', `/v1/budgets/scoped/${encodeURIComponent(scope)}?period=total`);
  expect(await capstan.ended(again.run_id)).toMatchObject({ state: 'succeeded' });
  expect(callsOf('batch')).toHaveLength(10);
  await checkRows();
});

async function readEvents(run: Run) {
  const { events } = await temporal.client.workflow.getHandle(runWorkflowId(run)).fetchHistory();
  return events ?? [];
}

/** Whether the queue gave a step of it to another worker than the one of the run. */
async function hasMoved(run: Run): Promise<boolean> {
  const events = await readEvents(run);
  const home = events.find((event) => event.workflowTaskStartedEventAttributes != null);
  const homeIdentity = home?.workflowTaskStartedEventAttributes?.identity;
  return events.some(({ activityTaskStartedEventAttributes: started }) => {
    return started != null && started.identity !== homeIdentity;
  });
}

test.runIf(isLong)(
  'short steps that turn slow continue where they were begun, whichever worker the queue leads them to',
  async () => {
    const steps = sideBySide(12, { who: 'slow', hold: true });
    const run = await capstan.submit(steps);
    await waitFor('the calls', () => held.length === steps.length);
    await waitFor('both workers to ask for them', async () => {
      const { raw } = await temporal.client.workflow.getHandle(runWorkflowId(run)).describe();
      const begun = raw.pendingActivities?.filter(({ lastWorkerIdentity }) => lastWorkerIdentity) ?? [];
      return begun.length === 2 * slots;
    });
    for (const { answer } of held) answer();
    expect(await capstan.ended(run.run_id)).toMatchObject({ state: 'succeeded', cost_usd: 1.2 });
    expect(held).toHaveLength(steps.length);
    expect(await hasMoved(run)).toBe(true);
    await checkRows();
  },
);

const chain = (who: string) => [
  step('a', { input: { who } }),
  step('b', { depends_on: ['a'], input: { who, hold: true } }),
  step('c', { depends_on: ['b'], input: { who } }),
];
const pair = (who: string) => sideBySide(2, { who, hold: true });

test.runIf(isLong).each([
  ['asleep', { steps: chain, holds: 1, calls: 3, options: {} }],
  // Enough for both calls, and not for both of them twice: then claims go one by one.
  ['asleep, with little money', { steps: pair, holds: 2, calls: 2, options: { budget_ceiling_usd: 0.3 } }],
])(
  'a run given to another worker during its batch, because the first one was %s: nothing is called twice',
  async (who, given) => {
    await capstan.killWorker('SIGTERM');
    const sleeper = another;
    const takeCall = instance.handle;
    const holdsOf = () => callsOf(who).filter(({ input }) => input.hold === true);
    instance.handle = (exec, response) => {
      void takeCall(exec, response);
      if (exec.input.hold === true && holdsOf().length === given.holds) sleeper.send('SIGSTOP'); // before its batch is over
    };
    const before = held.length;
    const run = await capstan.submit(given.steps(who), {}, given.options);
    await waitFor('the calls', () => held.length === before + given.holds);
    await capstan.startWorker();
    await waitFor('the run to be with the other one', async () =>
      (await readEvents(run)).some((event) => event.workflowTaskTimedOutEventAttributes != null),
    );
    for (const { answer } of held) answer();
    sleeper.send('SIGCONT');
    expect(await capstan.ended(run.run_id)).toMatchObject({ state: 'succeeded' });
    expect(callsOf(who)).toHaveLength(given.calls);
    instance.handle = takeCall;
    await checkRows();
  },
);
