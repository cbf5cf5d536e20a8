/** Steps whose instance answers 202 and sends its answer later, over real HTTP and a real database (K1 to K6). */
import { Readable } from 'node:stream';
import { beforeAll, expect, test } from 'vitest';
import { adoptCall } from '../../../src/db/attempt/callback.ts';
import type { Db } from '../../../src/db/connect.ts';
import { endLeftCalls, receiveLaterAnswer } from '../../../src/use-cases/callbacks/receipt.ts';
import { aRun, type StoredRun } from '../../support/factories.ts';
import { answer, type Exec, type Instance } from '../../support/fleet.ts';
import { listMoneyBreaches } from '../../support/invariants.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';
import { tablesNaming } from '../../support/tables.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps({ PUBLIC_URL: 'http://capstan.test', LEASE_MS: '1000' });
const { db } = world;
let held: Instance;
let freed: Instance;
let reported: Instance;

const output = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };

beforeAll(async () => {
  const price = { type: 'per_call', rate_usd: 0.5 };
  held = await world.register({
    name: 'later.held',
    cost_model: price,
    output,
    async: { slot: 'held' },
    max_concurrency: 2,
  });
  freed = await world.register({ name: 'later.freed', output, async: { slot: 'freed' }, max_concurrency: 1 });
  reported = await world.register({
    name: 'later.reported',
    cost_model: { ...price, worst_case: '{{ 0.4 }}' },
    settle: 'reported',
    async: { slot: 'held' },
  });
  for (const instance of [held, freed, reported]) {
    instance.handle = (_, response) => answer(response, 202, { ok: true });
  }
  const { fleet } = world.newWorker().ctx;
  await waitFor('the specs to be read', async () => {
    await fleet.refresh();
    return ['later.held', 'later.freed', 'later.reported'].every(
      (name) => fleet.all(name)[0]?.answers_later != null,
    );
  });
});

function aRunOf(capability: string, step: object = {}) {
  const steps = [{ id: 'a', capability, escalate: { enabled: false }, ...step }];
  return aRun(db, { ...stepsOf(steps), project_id: world.projectId() });
}

function addressOf({ execs }: Instance): string {
  return String((execs.at(-1) as Exec).headers['x-callback-url']);
}

/** As an instance sends it. @returns the code of the refusal; null: there was none */
async function send(address: string, body: unknown, on: Db = db): Promise<string | null> {
  const ctx = { ...world.newWorker().ctx, db: on };
  const token = address.slice(address.lastIndexOf('/') + 1);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return receiveLaterAnswer(ctx, token, Readable.from([Buffer.from(text)])).then(
    () => null,
    (error: { code: string }) => error.code,
  );
}

async function attemptsOf({ run_id }: StoredRun) {
  const rows = await db('attempt').where({ run_id }).orderBy('number');
  return rows.map(({ state, certainty, settled_nano, error }) => [
    state,
    certainty,
    settled_nano === null ? null : Number(settled_nano) / 1e9,
    error?.code ?? null,
  ]);
}

async function beginStep(run: StoredRun, more: object = {}) {
  const end = await world.newWorker().execute(run, { step_id: 'a', ...more });
  expect(end).toMatchObject({ kind: 'waiting', awaiting: 'callback' });
}

const resumed = { step_id: 'a', resumed: true };

test('waits as a row, keeps its money, and is judged as if the answer had come in place', async () => {
  const run = await aRunOf('later.held');
  await beginStep(run);
  expect(await attemptsOf(run)).toEqual([['dispatched', null, null, null]]);
  expect(await world.newWorker().execute(run, resumed)).toMatchObject({
    kind: 'waiting',
    awaiting: 'callback',
  });

  expect(await send(addressOf(held), { ok: true, output: { text: 'done' } })).toBeNull();
  expect(await db('step').where({ run_id: run.run_id }).whereNotNull('wake_requested_at')).toHaveLength(1);
  expect(await world.newWorker().execute(run, resumed)).toMatchObject({
    kind: 'succeeded',
    output: { text: 'done' },
  });
  expect(await attemptsOf(run)).toEqual([['settled', 'exact', 0.5, null]]);
  expect(await send(addressOf(held), { ok: true, output: { text: 'twice' } })).toBe('callback_answered');
  expect((await world.eventsOf(run)).filter((line) => line.startsWith('step.'))).toEqual([
    'step.started a',
    'step.routed a',
    'step.waiting a',
    'step.answered a',
    'step.succeeded a',
  ]);
});

test.each([
  ['an output that breaks its schema', { ok: true, output: { text: 7 } }, 'failed', 'output_invalid', 0.5],
  ['a refusal', { ok: false, error: 'no such voice' }, 'failed', 'input_rejected', 0],
  ['a text that is no JSON', '<html>', 'failed', 'response_invalid', 0],
])('%s fails it like an answer in place', async (_, body, kind, code, cost) => {
  const run = await aRunOf('later.held', { retry: { max: 0 } });
  await beginStep(run);
  expect(await send(addressOf(held), body)).toBeNull();
  const end = await world.newWorker().execute(run, resumed);
  expect(end).toMatchObject({ kind, error: { code } });
  const [attempt] = await attemptsOf(run);
  expect(attempt?.slice(2)).toEqual([cost, code]);
});

test('a failure that time may cure is retried, with the same Idempotency-Key', async () => {
  const run = await aRunOf('later.freed', { retry: { max: 2, initial: '1ms' } });
  await beginStep(run);
  const before = freed.execs.length;
  expect(await send(addressOf(freed), { ok: false, error: 'the GPU is gone', status: 502 })).toBeNull();
  const end = await world.newWorker().execute(run, resumed);
  expect(end).toMatchObject({ kind: 'retry' });
  await beginStep(run, { round: 2 });
  expect(freed.execs.length).toBe(before + 1);
  expect(new Set(freed.execs.slice(-2).map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  expect(await send(addressOf(freed), { text: 'bare' })).toBeNull();
  expect(await world.newWorker().execute(run, resumed)).toMatchObject({ kind: 'succeeded' });
});

test('a slot that is freed takes the next call, a held one does not', async () => {
  const first = await aRunOf('later.freed');
  const second = await aRunOf('later.freed');
  await beginStep(first);
  const address = addressOf(freed);
  await beginStep(second);
  expect(await send(addressOf(freed), { text: 'b' })).toBeNull();
  expect(await send(address, { text: 'a' })).toBeNull();
  for (const run of [first, second]) {
    expect(await world.newWorker().execute(run, resumed)).toMatchObject({ kind: 'succeeded' });
  }
  const runs = await Promise.all([aRunOf('later.held'), aRunOf('later.held'), aRunOf('later.held')]);
  await beginStep(runs[0]);
  await beginStep(runs[1]);
  await world.newWorker().ctx.fleet.refresh();
  expect(await world.newWorker().execute(runs[2], 'a')).toMatchObject({ kind: 'waiting', awaiting: 'slot' });
  await db('attempt')
    .whereIn(
      'run_id',
      runs.map(({ run_id }) => run_id),
    )
    .update({ answers_by: new Date(0), lease_until: new Date(0) });
  await db('queued_call').delete();
  const { ctx } = world.newWorker();
  expect(await endLeftCalls(ctx)).toBe(2);
  await ctx.fleet.refresh();
});

test('after the deadline it has timed out, and a late answer settles what it cost', async () => {
  const run = await aRunOf('later.reported', { timeout: '1m', retry: { max: 0 } });
  await beginStep(run);
  await db('attempt')
    .where({ run_id: run.run_id })
    .update({ answers_by: new Date(0), lease_until: new Date(0) });
  expect(await world.newWorker().execute(run, resumed)).toMatchObject({
    kind: 'unknown',
    error: { code: 'delivery_unknown' },
  });
  expect(await attemptsOf(run)).toEqual([['lost', 'estimated', 0.4, 'delivery_unknown']]);
  const late = { ok: true, output: { text: 'late', cost_usd: 0.123 } };
  expect(await send(addressOf(reported), late)).toBe('callback_late');
  expect(await attemptsOf(run)).toEqual([['lost', 'exact', 0.123, 'delivery_unknown']]);
  expect(await send(addressOf(reported), late)).toBe('callback_answered');
});

/** The deadline of a call that waits, from now by the database's clock. */
async function setDeadline({ run_id }: StoredRun, seconds: number): Promise<void> {
  const until = db.raw(`clock_timestamp() + ? * interval '1 second'`, [seconds]);
  await db('attempt').where({ run_id }).update({ answers_by: until });
  await db('attempt')
    .where({ run_id })
    .update({ lease_until: db.ref('answers_by') });
}

/** Answers at a moment relative to the deadline: the clock of the database does not move. */
async function sendAt({ run_id }: StoredRun, offset: string, body: unknown): Promise<string | null> {
  return db.transaction(async (trx) => {
    const { answers_by } = await trx('attempt').where({ run_id }).first('answers_by');
    await trx.raw('create schema standing');
    await trx.raw(
      `create function standing.clock_timestamp() returns timestamptz language sql immutable
       as $$ select '${answers_by.toISOString()}'::timestamptz + interval '${offset}' $$`,
    );
    await trx.raw('set local search_path to standing, pg_catalog, public');
    const code = await send(addressOf(reported), body, trx);
    await trx.raw('set local search_path to default');
    await trx.raw('drop schema standing cascade');
    return code;
  });
}

/** Maintenance looks at answers that have been there for a moment. */
async function settleLeft(): Promise<void> {
  await db('callback_answer').update({ received_at: new Date(0) });
  await endLeftCalls(world.newWorker().ctx);
}

const told = { ok: true, output: { cost_usd: 0.123 } };

test.each([
  ['a microsecond before', '-1 microsecond', null],
  ['exactly at', '0', 'callback_late'],
  ['a microsecond after', '1 microsecond', 'callback_late'],
])('an answer %s the deadline is accepted or late, never both', async (_, offset, code) => {
  const run = await aRunOf('later.reported', { retry: { max: 0 } });
  await beginStep(run);
  // Whole milliseconds: JavaScript knows no others.
  await db('attempt')
    .where({ run_id: run.run_id })
    .update({ answers_by: db.raw(`date_trunc('second', clock_timestamp())`), lease_until: new Date(0) });
  expect(await sendAt(run, offset, told)).toBe(code);
  const end = await world.newWorker().execute(run, resumed);
  expect(end.kind).toBe(code === null ? 'succeeded' : 'unknown');
  await settleLeft();
  const ended =
    code === null ? ['settled', 'exact', 0.123, null] : ['lost', 'exact', 0.123, 'delivery_unknown'];
  expect(await attemptsOf(run)).toEqual([ended]);
  expect(await db('callback_answer').whereNotNull('body')).toEqual([]);
});

test('an answer while a worker gives the call up is late, and settles its cost', async () => {
  const run = await aRunOf('later.reported', { retry: { max: 0 } });
  await beginStep(run);
  await setDeadline(run, -1);
  // As a worker does at the deadline, before it writes the end.
  const step = { run_id: run.run_id, step_id: 'a', item: 0, revision: 0 };
  const lease = { holder: '00000000-0000-4000-8000-000000000001', leaseMs: 60_000 };
  expect(await adoptCall(db, step, lease)).toMatchObject({ outcome: 'adopted' });
  expect(await send(addressOf(reported), told)).toBe('callback_late');
  expect(await attemptsOf(run)).toEqual([['dispatched', null, null, null]]);
  await db('attempt')
    .where({ run_id: run.run_id })
    .update({ token: lease.holder, lease_until: db.ref('answers_by') });
  expect(await world.newWorker().execute(run, resumed)).toMatchObject({ kind: 'unknown' });
  await settleLeft();
  expect(await attemptsOf(run)).toEqual([['lost', 'exact', 0.123, 'delivery_unknown']]);
});

test('a late answer of a call that no worker continues with settles its cost once maintenance has lost it', async () => {
  const run = await aRunOf('later.reported', { retry: { max: 0 } });
  await beginStep(run);
  await setDeadline(run, -120);
  expect(await send(addressOf(reported), told)).toBe('callback_late');
  await settleLeft();
  expect(await attemptsOf(run)).toEqual([['lost', 'exact', 0.123, 'contact_lost']]);
});

test('the answer of a cancelled step settles its money and nothing else', async () => {
  const run = await aRunOf('later.reported');
  await beginStep(run);
  await db('step')
    .where({ run_id: run.run_id })
    .update({ state: 'cancelled', finished_at: new Date(), awaiting: null });
  expect(await send(addressOf(reported), { ok: true, output: { cost_usd: 0.25 } })).toBe('callback_late');
  expect(await attemptsOf(run)).toEqual([['settled', 'exact', 0.25, null]]);
});

test.each([
  ['a refusal', { ok: false, error: 'the key sk-quokka is wrong' }],
  ['an output', { ok: true, output: { text: 'with sk-quokka', cost_usd: 0.1 } }],
  ['no JSON', '<html>sk-quokka</html>'],
])('nothing of %s that no step takes is stored, as it may repeat a secret', async (_, body) => {
  const run = await aRunOf('later.reported');
  await beginStep(run);
  await db('run').where({ run_id: run.run_id }).update({ state: 'cancelled', finished_at: new Date() });
  expect(await send(addressOf(reported), body)).toBe('callback_late');
  expect(await tablesNaming(db, 'sk-quokka')).toEqual([]);
});

test('an answer that comes before the process knows of the 202 counts, also when that process is gone', async () => {
  const quick = await aRunOf('later.held');
  held.handle = async (exec, response) => {
    expect(await send(String(exec.headers['x-callback-url']), { text: 'quick' })).toBeNull();
    answer(response, 202, {});
  };
  await beginStep(quick);
  expect(await world.newWorker().execute(quick, resumed)).toMatchObject({
    kind: 'succeeded',
    output: { text: 'quick' },
  });

  const dead = await aRunOf('later.held');
  held.handle = async (exec) => void (await send(String(exec.headers['x-callback-url']), { text: 'heard' }));
  const worker = world.newWorker();
  void worker.execute(dead, 'a').catch(() => undefined);
  const answered = db('attempt').join('callback_answer', 'callback_answer.attempt_id', 'attempt.attempt_id');
  const own = answered.where({ run_id: dead.run_id }).whereNotNull('body');
  await waitFor('its answer', async () => (await own.clone()).length === 1);
  // As after the end of its process: nothing renews its lease.
  await db('attempt')
    .where({ run_id: dead.run_id })
    .update({ token: '00000000-0000-4000-8000-000000000000', lease_until: new Date(0) });
  const calls = held.execs.length;
  expect(await world.newWorker().execute(dead, { step_id: 'a', round: 2 })).toMatchObject({
    kind: 'succeeded',
    output: { text: 'heard' },
  });
  expect(held.execs.length).toBe(calls);
  held.handle = (_, response) => answer(response, 202, {});
});

test('a stranger learns nothing', async () => {
  const run = await aRunOf('later.held');
  await beginStep(run);
  const address = addressOf(held);
  const [attempt, until, signature] = address.slice(address.lastIndexOf('/') + 1).split('.') as [
    string,
    string,
    string,
  ];
  const forged = [
    `${attempt}.${until}.${'A'.repeat(signature.length)}`,
    `${attempt}.${until}.`,
    `${attempt}.zzzzzzz.${signature}`,
    `att_unknown.${until}.${signature}`,
    `${attempt}.${until}.${signature}.x`,
    '..',
    attempt,
  ];
  for (const token of forged) expect(await send(`http://x/${token}`, { text: 'mine' })).toBe('not_found');
  expect(await db('callback_answer').where({ attempt_id: attempt })).toEqual([]);
  expect(await send(address, { text: 'own' })).toBeNull();
  expect(await world.newWorker().execute(run, resumed)).toMatchObject({ kind: 'succeeded' });
});

test('two workers that continue with one answer settle it once', async () => {
  const run = await aRunOf('later.held');
  await beginStep(run);
  expect(await send(addressOf(held), { text: 'one' })).toBeNull();
  const ends = await Promise.all([1, 2, 3].map(() => world.newWorker().execute(run, resumed)));
  expect(ends.filter(({ kind }) => kind === 'succeeded').length).toBeGreaterThanOrEqual(1);
  expect(ends.every(({ kind }) => kind === 'succeeded' || kind === 'retry')).toBe(true);
  expect(await attemptsOf(run)).toEqual([['settled', 'exact', 0.5, null]]);
});

test('an instance that does not declare it gets no address, and its 202 is its answer', async () => {
  const plain = await world.register({ name: 'later.plain' });
  plain.handle = (_, response) => answer(response, 202, { ok: true, output: { text: 'now' } });
  const run = await aRunOf('later.plain');
  expect(await world.newWorker().execute(run, 'a')).toMatchObject({
    kind: 'succeeded',
    output: { text: 'now' },
  });
  expect(plain.execs.at(-1)?.headers['x-callback-url']).toBeUndefined();
});

test('the ledger is exact after all of them', async () => {
  await endLeftCalls(world.newWorker().ctx);
  expect(await db('attempt').where({ state: 'dispatched' })).toEqual([]);
  expect(await listMoneyBreaches(db)).toEqual([]);
});
