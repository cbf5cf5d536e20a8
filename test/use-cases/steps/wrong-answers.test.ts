/** Wrong answers that a step asks for again, over real HTTP and a real database. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { readFault } from '@capstan/core/call/wrong-answer';
import type { RetryPolicy } from '@capstan/core/contracts/pipeline';
import { beforeEach, expect, test } from 'vitest';
import { aRun, type StoredRun } from '../../support/factories.ts';
import { answer, type Instance } from '../../support/fleet.ts';
import { aloneInBatch, stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;
const cost_model = { type: 'per_call', rate_usd: 0.5 } as const;
const output = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
let name: string;
let instance: Instance;
/** A new one each time: one that answers so too often rests for a while. */
beforeEach(async () => {
  name = `wrong-${randomUUID()}`;
  instance = await world.register({ name, output, cost_model, settle: 'reported' });
});

type Respond = (response: ServerResponse) => void;

function value(body: object, cost_usd = 0.1): Respond {
  return (response) => answer(response, 200, { ...body, cost_usd });
}
const right = value({ n: 1 }, 0.3);
/** As an instance answers whose model gave no JSON. */
const ofModel: Respond = (response) => {
  response.setHeader('x-error-code', 'model_answer_invalid');
  answer(response, 422, { ok: false, error: 'no JSON – "sure!"', cost_usd: 0.2 });
};
const broken: Respond = (response) => answer(response, 500, { ok: false, error: 'broken' });

/** Each answers one call; the last one all that follow. */
function answerBy(...responds: readonly [Respond, ...Respond[]]): void {
  const left = [...responds];
  instance.handle = (_, response) => (left.length > 1 ? left.shift() : left[0])?.(response);
}

function runOf(retry: RetryPolicy, part: object = {}): Promise<StoredRun> {
  return aRun(db, stepsOf([{ id: 'a', capability: name, retry, escalate: { enabled: false }, ...part }]));
}

function told() {
  return instance.execs.map(({ headers }) => {
    const fault = headers['x-previous-fault'];
    return fault === undefined ? null : readFault(String(fault));
  });
}

async function paid({ run_id }: StoredRun) {
  const attempts = await db('attempt').where({ run_id }).orderBy('number').select('*');
  return attempts.map(({ state, counted, settled_nano }) => [state, counted, Number(settled_nano) / 1e9]);
}

const ofSchema = {
  code: 'output_invalid',
  message: 'the answer does not match the output schema: /n must be integer, got "one"',
  errors: [{ pointer: '/n', message: 'must be integer, got "one"' }],
};
const byModel = { code: 'model_answer_invalid', message: 'no JSON – "sure!"' };

test.each([
  ['from the queue', {}],
  ['in a batch', { batch: aloneInBatch }],
])('is asked for again at once, %s, with its fault, under a key of its own, and is paid', async (_, how) => {
  answerBy(value({ n: 'one' }), ofModel, right);
  const run = await runOf({ invalid_output: 2, initial: '1h' });
  const end = await world.newWorker().execute(run, { step_id: 'a', ...how });
  expect(end).toMatchObject({ kind: 'succeeded', output: { n: 1 } });
  expect(told()).toEqual([null, ofSchema, byModel]);
  const sent = instance.execs.map(({ headers }) => headers);
  expect(sent.map((headers) => headers['x-attempt'])).toEqual(['1', '2', '3']);
  expect(new Set(sent.map((headers) => headers['idempotency-key'])).size).toBe(3);
  expect(await paid(run)).toEqual([
    ['settled', false, 0.1],
    ['settled', false, 0.2],
    ['settled', false, 0.3],
  ]);
  const spent = await db('ledger_entry')
    .where({ capability: name, kind: 'settle' })
    .sum('amount_nano as nano');
  expect(Number(spent[0]?.nano) / 1e9).toBeCloseTo(0.6);
});

test('fails the step when it was asked for as often as the step allows', async () => {
  answerBy(value({ n: 'one' }));
  const run = await runOf({ invalid_output: 2 });
  const error = { code: 'output_invalid', message: ofSchema.message, details: { errors: ofSchema.errors } };
  expect(await world.newWorker().execute(run, 'a')).toMatchObject({ kind: 'failed', error });
  expect(instance.execs).toHaveLength(3);
  expect(await db('step').where({ run_id: run.run_id }).first('state', 'error')).toEqual({
    state: 'failed',
    error,
  });
});

test('is not asked for again by default', async () => {
  answerBy(ofModel);
  expect(await world.newWorker().execute(await runOf({}), 'a')).toMatchObject({ kind: 'failed' });
  expect(instance.execs).toHaveLength(1);
});

test('is remembered by the next process that makes the call', async () => {
  answerBy(ofModel, broken, broken, value({ n: 'one' }), ofModel);
  const run = await runOf({ invalid_output: 2, max: 3, initial: '1ms' });
  expect(await world.newWorker().execute(run, 'a')).toMatchObject({ kind: 'retry' });
  expect(await world.newWorker().execute(run, { step_id: 'a', round: 2 })).toMatchObject({ kind: 'retry' });
  const end = await world.newWorker().execute(run, { step_id: 'a', round: 3 });
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'input_rejected' } });
  expect(told()).toEqual([null, byModel, byModel, byModel, ofSchema]);
  const keys = instance.execs.map(({ headers }) => headers['idempotency-key']);
  expect([new Set(keys).size, new Set(keys.slice(1, 4)).size]).toEqual([3, 1]);
});

test('is asked for within the ceiling of the step', async () => {
  answerBy(value({ n: 'one' }, 0.4));
  const run = await runOf({ invalid_output: 9 }, { budget_ceiling_usd: 1 });
  const end = await world.newWorker().execute(run, 'a');
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'output_invalid' } });
  expect(instance.execs).toHaveLength(2);
  expect(await db('step').where({ run_id: run.run_id }).first('state')).toEqual({ state: 'failed' });
});
