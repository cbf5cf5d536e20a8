import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { connectDatabase } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/use-cases/routing/call.ts';
import { type Exec, echo, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const capstan = useMortalCapstan();
let hosted: Instance;

beforeAll(async () => {
  hosted = await startInstance(capstan, {
    name: 'work',
    cost_model: { type: 'per_call', rate_usd: 0.5 },
  });
});
afterAll(() => hosted?.stop());

/** One death for all: Temporal gives what a dead worker held to another one after ten seconds. */
describe('worker killed -9 in the middle of a step', () => {
  let once: Instance;
  let lost: Exec;
  let repeated: Run;
  let unrepeated: Run;
  let strict: Instance;
  let corrected: Run;
  beforeAll(async () => {
    once = await startInstance(capstan, {
      name: 'once',
      cost_model: { type: 'per_call', rate_usd: 0.5 },
    });
    strict = await startInstance(capstan, {
      name: 'strict',
      input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
    });
    for (const instance of [hosted, once, strict]) instance.handle = () => undefined;
    repeated = await capstan.submit([
      { id: 'a', capability: 'work', input: { n: 1 } },
      { id: 'b', capability: 'work', input: { n: '{{ steps.a.output.n }}' } },
    ]);
    unrepeated = await capstan.submit([{ id: 'a', capability: 'once', retry: { max: 0 }, input: {} }]);
    // Of the job: a constant would be refused at submission, as soon as the schema is known there.
    corrected = await capstan.submit(
      [{ id: 'a', capability: 'strict', input: { n: '{{ job.n }}' }, escalate: { repair: 'apply' } }],
      { n: '5' },
    );
    lost = await waitFor('the call to arrive', () => hosted.execs[0]);
    await waitFor('the other call to arrive', () => once.execs[0]);
    await waitFor('the corrected call to arrive', () => strict.execs[0]);
    await capstan.killWorker('SIGKILL');
    await waitFor('the connection to close', () => lost.closed);
    for (const instance of [hosted, once, strict]) instance.handle = echo;
    await capstan.startWorker();
  });
  afterAll(() => Promise.all([once?.stop(), strict?.stop()]));

  it('the answered attempt is settled once, the lost one estimated', async () => {
    const { run_id } = repeated;
    expect(await capstan.ended(run_id, 60_000)).toMatchObject({ state: 'succeeded', cost_usd: 1.5 });
    const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/a`);
    expect(body.attempts).toMatchObject([
      { state: 'lost', ambiguity: 'ambiguous', certainty: 'estimated', cost_usd: 0.5 },
      { state: 'settled', ambiguity: 'answered', certainty: 'exact', cost_usd: 0.5 },
    ]);
    const keys = hosted.execs.map(({ headers }) => headers['idempotency-key']);
    expect(keys[0]).toBe(keys[1]);
    const db = connectDatabase(capstan.databaseUrl, 1);
    const entries = await db('ledger_entry')
      .whereIn('attempt_id', db('attempt').where({ run_id }).select('attempt_id'))
      .where({ kind: 'settle' })
      .orderBy('entry_id')
      .select('certainty');
    await db.destroy();
    expect(entries.map(({ certainty }) => certainty)).toEqual(['estimated', 'exact', 'exact']);
  });

  it('a call with retry.max 0 is not sent again and ends as unknown', async () => {
    expect(await capstan.ended(unrepeated.run_id, 60_000)).toMatchObject({
      state: 'failed',
      cost_usd: 0.5,
      steps: [{ state: 'unknown', error: { code: 'delivery_unknown' } }],
    });
    expect(once.execs).toHaveLength(1);
  });

  it('a correction is made again, and once', async () => {
    const { run_id } = corrected;
    expect(await capstan.ended(run_id, 90_000)).toMatchObject({
      state: 'succeeded',
      output: { a: { n: 5 } },
      steps: [{ revision: 1 }],
    });
    const keys = strict.execs.map(({ headers, input }) => [headers['idempotency-key'], input.n]);
    expect(keys).toEqual([
      [toOpaqueKey(`${run_id}.a.0.1`), 5],
      [toOpaqueKey(`${run_id}.a.0.1`), 5],
    ]);
    const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/a`);
    expect(body.revisions).toHaveLength(1);
  });
});

test('server killed -9 right after it answered: the run is started by the next one, and once', async () => {
  hosted.handle = echo;
  const before = hosted.execs.length;
  const body = {
    definition: { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'work', input: {} }] },
  };
  const headers = { 'idempotency-key': 'order-77' };
  const first = await capstan.request<Run>('POST', '/v1/runs', body, headers);
  await capstan.killServer('SIGKILL');
  expect(first.status).toBe(202);
  await capstan.startServer();
  const again = await capstan.request<Run>('POST', '/v1/runs', body, headers);
  expect(again.status).toBe(202);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(again.body.run_id).toBe(first.body.run_id);
  expect(await capstan.ended(first.body.run_id)).toMatchObject({ state: 'succeeded' });
  expect(hosted.execs.length - before).toBe(1);

  const other = await capstan.request<{ code: string }>(
    'POST',
    '/v1/runs',
    { ...body, job: { n: 1 } },
    headers,
  );
  expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reuse']);
});

test.runIf(isLong)(
  'worker stopped by SIGTERM in the middle of a long step: the next worker does it again',
  async () => {
    hosted.handle = () => undefined;
    const before = hosted.execs.length;
    const { run_id } = await capstan.submit([{ id: 'a', capability: 'work', input: {} }]);
    await waitFor('the call to arrive', () => hosted.execs.length === before + 1);
    const stopped = capstan.killWorker('SIGTERM');
    hosted.handle = echo;
    await stopped;
    await capstan.startWorker();
    expect(await capstan.ended(run_id, 60_000)).toMatchObject({ state: 'succeeded' });
  },
);
