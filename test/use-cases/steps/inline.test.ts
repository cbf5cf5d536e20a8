import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { expect, it } from 'vitest';
import type { InlineBatchResult } from '../../../src/use-cases/steps/inline.ts';
import { aRun } from '../../support/factories.ts';
import { answer, echo, type Handler } from '../../support/fleet.ts';
import { stepsOf, useSteps, type Worker } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();
const { db } = world;

async function someSteps(capability: string, handle: Handler, steps: readonly Partial<StepDefinition>[]) {
  const instance = await world.register({ name: capability });
  instance.handle = handle;
  const ids = 'abcdefgh';
  const all = steps.map((step, at) => ({ id: ids[at] ?? '', capability, ...step }));
  const run = await aRun(db, stepsOf(all));
  const units = all.map(({ id }, at) => ({
    step_id: id,
    total_timeout_ms: 60_000,
    after: at === 0 ? [] : [at - 1],
  }));
  return { instance, run, batch: { run_id: run.run_id, units } };
}
type Begun = Awaited<ReturnType<typeof someSteps>>;
function told({ results }: InlineBatchResult): unknown[] {
  return results.map((result) =>
    typeof result === 'string' ? result : result.kind === 'waiting' ? result.awaiting : result.output,
  );
}
/** Calls that are open, and a way to answer all of them. */
function holding() {
  const open: (() => void)[] = [];
  const handle: Handler = (exec, response) => void open.push(() => echo(exec, response));
  return {
    handle,
    isOpen: () => open.length > 0,
    answer: () => {
      for (const reply of open.splice(0)) reply();
    },
  };
}

it('steps that follow one another are claimed with the ends of those before them, each sent once', async () => {
  const chain = ['a', 'b', 'c', 'd', 'e'];
  const { instance, run, batch } = await someSteps(
    'chained',
    echo,
    chain.map((id, at) => ({
      input: { id, before: at === 0 ? null : `{{ steps.${chain[at - 1]}.output.id }}` },
    })),
  );
  const results = await world.newWorker().inline(20_000)(batch);
  expect(told(results).at(-1)).toEqual({ id: 'e', before: 'd' });
  expect(instance.execs.map(({ input }) => input.id)).toEqual(chain);
  const { rows } = await db.raw(
    `select count(distinct xmin::text)::int as transactions from step where run_id = ?`,
    [run.run_id],
  );
  expect(rows[0].transactions).toBe(chain.length); // each step was last written by its end
  const { rows: shared } = await db.raw(
    `select count(*)::int as together from event routed join event ended using (run_id, xid)
     where run_id = ? and routed.type = 'step.routed' and ended.type = 'step.succeeded'`,
    [run.run_id],
  );
  expect(shared[0].together).toBe(chain.length - 1);
});

it.each([
  ['that it was begun in a batch', { again: true as const }],
  ['not', {}],
])('a slow step continues, and an activity of the queue joins it, whether it knows %s', async (_, how) => {
  const held = holding();
  const name = `slow-${Object.keys(how).length}`;
  const { instance, run, batch } = await someSteps(name, held.handle, [{}, { input: { of: 'b' } }]);
  const worker = world.newWorker();
  expect(told(await worker.inline()(batch))).toEqual(['again', 'left']);
  const end = worker.execute(run, { step_id: 'a', ...how });
  await waitFor('the call', held.isOpen);
  held.answer();
  expect(await end).toMatchObject({ kind: 'succeeded', attempt: { number: 1 } });
  expect(instance.execs).toHaveLength(1);
});

/** Why it is asked for while its call is running. */
const ways: [string, { readonly again: true } | { readonly round: number }][] = [
  ['the queue', { again: true }],
  ['Temporal once more', { round: 2 }],
];

it.each(ways)(
  'asked for by %s in another process it is waited for, and the row has its end',
  async (_, way) => {
    const held = holding();
    const { instance, run, batch } = await someSteps(`far-${Object.keys(way)[0]}`, held.handle, [{}]);
    expect(told(await world.newWorker().inline()(batch))).toEqual(['again']);
    await waitFor('the call', held.isOpen);
    const looks: string[] = [];
    const note = ({ sql }: { sql: string }): unknown => sql.includes('lease_until >') && looks.push(sql);
    db.on('query', note);
    const end = world.newWorker().execute(run, { step_id: 'a', ...way });
    await waitFor('it to be waited for', () => looks.length > 0);
    db.removeListener('query', note);
    held.answer();
    expect(await end).toMatchObject({ kind: 'succeeded' });
    expect(instance.execs).toHaveLength(1);
  },
);

it.each(ways)(
  'asked for by %s, of a process that is gone, it is sent again when the lease is over',
  async (_, way) => {
    const { instance, run, batch } = await someSteps(`gone-${Object.keys(way)[0]}`, () => undefined, [{}]);
    expect(told(await world.newWorker().inline()(batch))).toEqual(['again']);
    await waitFor('the call', () => instance.execs.length === 1);
    instance.handle = echo;
    const end = world.newWorker().execute(run, { step_id: 'a', ...way });
    // The process lives on here, and would renew its lease.
    await db('attempt')
      .where({ run_id: run.run_id })
      .update({ token: '00000000-0000-4000-8000-000000000000', lease_until: new Date(0) });
    expect(await end).toMatchObject({ kind: 'succeeded', attempt: { number: 2 } });
  },
);

it('a batch that comes again, in another process, sends nothing that has begun', async () => {
  const held = holding();
  const { instance, batch } = await someSteps('twice', held.handle, [{}, {}]);
  const first = world.newWorker().inline()(batch);
  await waitFor('the call', held.isOpen);
  const second = world.newWorker().inline()(batch);
  expect(told(await second)).toEqual(['again', 'left']);
  held.answer();
  await first;
  expect(instance.execs.filter(({ headers }) => headers['x-attempt'] !== '1')).toEqual([]);
});

it.each([
  ['a batch', (worker: Worker, { batch }: Begun) => worker.inline()(batch)],
  ['the queue', (worker: Worker, { run }: Begun) => worker.execute(run, 'a')],
] as const)(
  'begun by %s in another process, an activity that knows nothing of that sends nothing',
  async (by, begin) => {
    const held = holding();
    const begun = await someSteps(`unknown-${by.replace(' ', '-')}`, held.handle, [{}]);
    const { instance, run } = begun;
    const first = begin(world.newWorker(), begun);
    await waitFor('the call', held.isOpen);
    instance.handle = echo;
    expect(await world.newWorker().execute(run, 'a')).toMatchObject({ kind: 'retry' });
    held.answer();
    await first;
    expect(await world.newWorker().execute(run, { step_id: 'a', round: 2 })).toMatchObject({
      kind: 'succeeded',
    });
    expect(instance.execs).toHaveLength(1);
  },
);

it('a step that must be retried later has not failed: the queue continues with it, and its followers are left', async () => {
  const busy: Handler = (_exec, response) => {
    response.setHeader('retry-after', '60');
    answer(response, 429, { ok: false, error: 'busy' });
  };
  const { instance, run, batch } = await someSteps('busy', busy, [{}, {}]);
  expect(told(await world.newWorker().inline()(batch))).toEqual(['again', 'left']);
  const row = await db('step').where({ run_id: run.run_id }).first('state');
  expect(row?.state).toBe('retrying');
  instance.handle = echo;
  await db('instance').where({ name: 'busy' }).update({ breaker_until: null });
  // its pause is over
  await db('attempt')
    .where({ run_id: run.run_id })
    .update({ finished_at: new Date(0) });
  const end = await world.newWorker().execute(run, { step_id: 'a', again: true });
  expect(end).toMatchObject({ kind: 'succeeded' });
});

it.each([
  ['a counted one, in its process', 500, null, true, 10_000, '10s'],
  ['one that does not count, in another process', 503, null, false, 500, '10ms'],
  ['a counted one, in another process', 500, null, false, 9_000, '9s'],
  ['one that the instance asks for, in another process', 429, '7', false, 7_000, '10ms'],
  ['one that the instance asks for, in its process', 503, '8', true, 8_000, '10ms'],
] as const)(
  'the pause after a failure that comes when the batch has reported is kept: %s',
  async (_, status, retryAfter, isSame, pauseMs, initial) => {
    const open: (() => void)[] = [];
    const fail: Handler = (_exec, response) =>
      void open.push(() => {
        if (retryAfter !== null) response.setHeader('retry-after', retryAfter);
        answer(response, status, { ok: false, error: 'broken' });
      });
    const name = `late-${status}-${pauseMs}`;
    const { instance, run, batch } = await someSteps(name, fail, [{ retry: { max: 2, initial } }]);
    const worker = world.newWorker();
    expect(told(await worker.inline()(batch))).toEqual(['again']);
    await waitFor('the call', () => open.length > 0);
    open[0]?.();
    const ended = db('attempt').where({ run_id: run.run_id }).whereNotNull('finished_at');
    await waitFor('its failure', () => ended.clone().first());
    // Another process reads the pause from the row: it is not over soon, also on a slow machine.
    if (!isSame) await ended.clone().update({ finished_at: db.raw("finished_at + interval '5 seconds'") });
    const last = await ended.first('finished_at');
    const next = isSame ? worker : world.newWorker();
    const end = await next.execute(run, { step_id: 'a', again: true });
    expect(end).toMatchObject({ kind: 'waiting', awaiting: 'retry', rounds: 1 });
    const { until } = end as { until: Date };
    expect(until.getTime() - last.finished_at.getTime()).toBeGreaterThanOrEqual(pauseMs * 0.79);
    expect(instance.execs).toHaveLength(1);
    instance.handle = echo;
    await db('instance').where({ name }).update({ breaker_until: null });
    const resumed = await world.newWorker().execute(run, { step_id: 'a', resumed: true });
    expect(resumed).toMatchObject({ kind: 'succeeded', attempt: { number: 2 } });
  },
);

it('a step that is sent at most once is not sent in a batch', async () => {
  const { instance, run, batch } = await someSteps('once', echo, [{ retry: { max: 0 } }]);
  expect(told(await world.newWorker().inline()(batch))).toEqual(['again']);
  expect(instance.execs).toEqual([]);
  const end = await world.newWorker().execute(run, { step_id: 'a', again: true });
  expect(end).toMatchObject({ kind: 'succeeded' });
});

it('the follower of an answer that another attempt has overtaken is not sent', async () => {
  const held = holding();
  const { instance, run, batch } = await someSteps('overtaken', held.handle, [
    { input: { id: 'a' } },
    { input: { id: 'b', before: '{{ steps.a.output.id }}' } },
  ]);
  const results = world.newWorker().inline(20_000)(batch);
  await waitFor('the call', held.isOpen);
  await db('attempt').where({ run_id: run.run_id }).update({ token: '00000000-0000-4000-8000-000000000000' });
  held.answer();
  expect(told(await results)).toEqual(['again', 'again']);
  expect(instance.execs.map(({ input }) => input.id)).toEqual(['a']);
  const open = await db('attempt').where({ run_id: run.run_id, step_id: 'b' }).select('state', 'ambiguity');
  expect(open).toEqual([{ state: 'released', ambiguity: 'not_sent' }]);
});

it('values that are set follow an answer in the same batch, once it is stored, and cost nothing', async () => {
  const { instance, run, batch } = await someSteps('shaping', echo, [
    { input: { n: 1 } },
    { capability: undefined, set: { n: '{{ steps.a.output.n + 1 }}' } },
    { capability: undefined, set: { n: '{{ steps.b.output.n + 1 }}' } },
    { input: { n: '{{ steps.c.output.n }}' } },
  ]);
  const worker = world.newWorker();
  expect(told(await worker.inline(20_000)(batch))).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 3 }]);
  expect(instance.execs.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 3 }]);
  expect((await world.eventsOf(run)).filter((event) => event.endsWith(' b'))).toEqual([
    'step.started b',
    'step.succeeded b',
  ]);
  expect(await db('attempt').where({ run_id: run.run_id, step_id: 'b' })).toEqual([]);
  expect(told(await worker.inline(20_000)(batch))).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 3 }]);
  expect(instance.execs).toHaveLength(2);
});

it('values that read an answer that was not stored are not stored either', async () => {
  const { instance, run, batch } = await someSteps('unstored', echo, [
    { input: { n: 1 } },
    { capability: undefined, set: { n: '{{ steps.a.output.n }}' } },
  ]);
  instance.handle = (_, response) => answer(response, 500, { ok: false, error: 'broken' });
  const { results } = await world.newWorker().inline(20_000)(batch);
  expect(results).toMatchObject([{ kind: 'waiting', awaiting: 'retry' }, 'left']);
  expect(await db('step').where({ run_id: run.run_id, step_id: 'b' })).toEqual([]);
});
