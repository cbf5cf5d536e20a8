import type { AuditEntry } from '@capstan/core/contracts/access';
import type { ScopedBudget } from '@capstan/core/contracts/money';
import type { Problem } from '@capstan/core/contracts/problem';
import type { Run } from '@capstan/core/contracts/run';
import type { BulkAnswer, RunActs, RunCount } from '@capstan/core/contracts/run-control';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ MAINTENANCE_MS: 250 });
  await anInstance(api.db, { name: 'x' });
  const steps = [{ id: 'a', capability: 'x' }];
  const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
  const concurrency = { key: 'user {{ job.user }}', limit: 2 };
  for (const body of [
    { pipeline: 'plain', version: '1', steps },
    {
      pipeline: 'checked',
      version: '1',
      steps,
      job_schema: schema,
      priority: 'batch',
      budget_ceiling_usd: 2,
    },
    { pipeline: 'queued', version: '1', steps, concurrency },
    { pipeline: 'strict', version: '1', steps, concurrency: { ...concurrency, on_limit: 'reject' } },
    { pipeline: 'missing', version: '1', steps: [{ id: 'a', capability: 'nobody-has-it' }] },
    {
      pipeline: 'patient',
      version: '1',
      steps: [{ id: 'a', capability: 'nobody-has-it', wait_for_capability: '1h' }],
    },
  ]) {
    await api.call('/v1/pipelines', { body });
  }
});
afterAll(() => api.close());

function submit<Body = Run>(body: object) {
  return readJson<Body>(api.call('/v1/runs', { body }));
}
function bulk(runs: object[], headers: Record<string, string> = {}) {
  return readJson<BulkAnswer>(api.call('/v1/runs/bulk', { body: { runs }, headers }));
}
function end(run_id: string) {
  return finishRun(api.db, { run_id, state: 'succeeded', output: null, error: null, step_ids: [] });
}
async function isStarted(run_id: string): Promise<boolean> {
  const row = await api.db('run').where({ run_id }).first('start_delivered_at');
  return row?.start_delivered_at != null;
}

describe('a submission', () => {
  test('is checked against the job_schema, with pointers', async () => {
    expect(await submit({ pipeline: 'checked', job: { n: 'one' } })).toEqual([
      422,
      expect.objectContaining({
        code: 'job_invalid',
        errors: [expect.objectContaining({ pointer: '/job/n', message: expect.stringContaining('integer') })],
      }),
    ]);
    const [, { job_id }] = await readJson<{ job_id: string }>(api.call('/v1/jobs', { body: { job: {} } }));
    expect((await submit({ pipeline: 'checked', job_id }))[1]).toMatchObject({ code: 'job_invalid' });
  });

  test('takes priority and ceiling from the definition, unless the request sets them', async () => {
    const job = { n: 1 };
    expect((await submit({ pipeline: 'checked', job }))[1]).toMatchObject({
      priority: 'batch',
      budget_ceiling_usd: 2,
    });
    const own = { priority: 'interactive', budget_ceiling_usd: 1 };
    expect((await submit({ pipeline: 'checked', job, ...own }))[1]).toMatchObject(own);
  });

  test('of a capability that does not exist is refused, unless the step waits for it', async () => {
    expect(await submit({ pipeline: 'missing' })).toEqual([
      422,
      expect.objectContaining({ code: 'definition_invalid', errors: [expect.anything()] }),
    ]);
    expect((await submit({ pipeline: 'patient' }))[0]).toBe(202);
  });
});

describe('runs in bulk', () => {
  test('bring at most 20 different definitions', async () => {
    const inline = (version: number) => ({
      definition: { pipeline: 'inline', version: `${version}`, steps: [{ id: 'a', capability: 'x' }] },
    });
    const [, { items }] = await bulk([...Array.from({ length: 22 }, (_, n) => inline(n)), inline(0)]);
    expect(items.map(({ status }) => status)).toEqual([...Array(20).fill(202), 422, 422, 202]);
  });

  test('are accepted or refused independently, in their order', async () => {
    const [status, { items }] = await bulk([
      { pipeline: 'plain', job: { n: 1 } },
      { pipeline: 'nothing' },
      { pipeline: 'checked', job: {} },
      { definition: { pipeline: 'inline', version: '1', steps: [{ id: 'a', capability: 'x' }] } },
      { pipeline: 'plain', job: { texts: Array.from({ length: 5 }, () => 'x'.repeat(250_000)) } },
      { pipeline: 'checked', job: { n: 2 } },
    ]);
    expect([status, items.map((item) => item.status)]).toEqual([200, [202, 404, 422, 202, 422, 202]]);
    expect(items.map(({ error }) => error?.code)).toEqual([
      ...[undefined, 'not_found', 'job_invalid', undefined, 'job_invalid', undefined],
    ]);
    for (const { run_id } of items)
      if (run_id !== undefined) await waitFor('its start', () => isStarted(run_id));
  });

  test('with a key are the same runs, however often they are asked for', async () => {
    const runs = [{ pipeline: 'plain' }, { pipeline: 'nothing' }];
    const count = async () => Number((await api.db('run').count('* as n').first())?.n);
    const before = await count();
    const [first, ...others] = await Promise.all(
      Array.from({ length: 5 }, () => bulk(runs, { 'idempotency-key': 'many' })),
    );
    for (const other of others) expect(other[1].items[0]).toEqual(first?.[1].items[0]);
    expect(await count()).toBe(before + 1);
  });

  test('are accepted many at once, and no more than a thousand per request', async () => {
    const many = isLong ? 500 : 20;
    const runs = Array.from({ length: many }, (_, n) => ({ pipeline: 'plain', job: { n } }));
    const [, { items }] = await bulk(runs);
    expect(items.filter(({ status }) => status === 202)).toHaveLength(many);
    expect((await bulk(Array.from({ length: 1_001 }, () => ({ pipeline: 'plain' }))))[0]).toBe(422);
  });
});

describe('a budget of all runs of a request', () => {
  const ask = (runs: object[], budget_all_usd: unknown, key?: string) =>
    readJson<BulkAnswer>(
      api.call('/v1/runs/bulk', {
        body: { runs, budget_all_usd },
        headers: key === undefined ? {} : { 'idempotency-key': key },
      }),
    );
  const budgets = async () =>
    (await readJson<{ items: ScopedBudget[] }>(api.call('/v1/budgets/scoped')))[1].items.map(
      ({ scope, period, limit_usd }) => `${scope} ${period} ${limit_usd}`,
    );
  const labelsOf = (run_id?: string) => api.db('run').where({ run_id }).first('labels');

  test('is that of a label of their own, which reruns keep', async () => {
    const runs = [
      { pipeline: 'plain', labels: { team: 'ads' } },
      { pipeline: 'nothing' },
      { pipeline: 'plain' },
    ];
    const [status, { batch, items }] = await ask(runs, 2.5);
    expect([status, items.map((item) => item.status)]).toEqual([200, [202, 404, 202]]);
    expect(batch).toMatch(/^bat_/);
    expect(await labelsOf(items[0]?.run_id)).toEqual({ labels: { team: 'ads', batch } });
    expect(await labelsOf(items[2]?.run_id)).toEqual({ labels: { batch } });
    expect(await budgets()).toContain(`label:batch=${batch} total 2.5`);
    const [, other] = await ask([{ pipeline: 'plain' }], 1);
    expect(other.batch).not.toBe(batch);
    await end(items[0]?.run_id ?? '');
    const rerun = { job: { n: 2 } };
    const [, again] = await readJson<Run>(api.call(`/v1/runs/${items[0]?.run_id}/rerun`, { body: rerun }));
    expect(again.labels).toEqual({ team: 'ads', batch });
    const audit = await api.db('audit').where({ subject: `label:batch=${batch}` });
    expect(audit.map(({ action }) => action)).toEqual(['budget.limited']);
  });

  test('stays that of a rerun whose pipeline takes the label from the new job', async () => {
    const definition = {
      pipeline: 'named',
      version: '1',
      labels: { batch: '{{ job.batch }}', who: '{{ job.who }}' },
      steps: [{ id: 'a', capability: 'x' }],
    };
    const [, { batch, items }] = await ask([{ definition, job: { batch: 'own', who: 'ann' } }], 1);
    const [{ run_id = '' } = {}] = items;
    await end(run_id);
    const body = { job: { batch: 'out', who: 'bob' } };
    const [, again] = await readJson<Run>(api.call(`/v1/runs/${run_id}/rerun`, { body }));
    expect(again.labels).toEqual({ batch, who: 'bob' });
  });

  test('with a key is one, however often it is asked for', async () => {
    const before = (await budgets()).length;
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => ask([{ pipeline: 'plain' }], 3, 'one-batch')),
    );
    const known = answers.filter(([status]) => status === 200);
    expect(new Set(known.map(([, { batch }]) => batch)).size).toBe(1);
    expect(await ask([{ pipeline: 'plain' }], 3, 'one-batch')).toEqual([200, known[0]?.[1]]);
    expect((await budgets()).length).toBe(before + 1);
    expect((await ask([{ pipeline: 'plain' }], 4, 'one-batch'))[0]).toBe(422);
  });

  test('is not made without a run, nor left by a request that dies', async () => {
    const before = await budgets();
    const [, { batch, items }] = await ask(
      [{ pipeline: 'nothing' }, { pipeline: 'plain', labels: { batch: '7' } }],
      1,
    );
    expect([batch, items.map(({ status }) => status)]).toEqual([undefined, [404, 422]]);
    expect(JSON.stringify(items[1]?.error)).toContain('/labels/batch');
    for (const usd of [0, -1, '5', 1e-10]) expect((await ask([{ pipeline: 'plain' }], usd))[0]).toBe(422);
    await api.db.raw(`create function no_run() returns trigger language plpgsql as
      $$ begin if jsonb_exists(new.labels, 'batch') then raise 'the process died'; end if; return new; end $$`);
    await api.db.raw('create trigger no_run after insert on run for each row execute function no_run()');
    try {
      expect((await ask([{ pipeline: 'plain' }], 1, 'died'))[0]).toBe(500);
    } finally {
      await api.db.raw('drop trigger no_run on run');
    }
    expect(await budgets()).toEqual(before);
    expect((await ask([{ pipeline: 'plain' }], 1, 'died'))[1].batch).toMatch(/^bat_/);
  });

  test('is refused if a call could then match nine', async () => {
    const names = Array.from({ length: 8 }, (_, at) => `label:l${at}=v`);
    const put = (name: string, method: string) =>
      api.call(`/v1/budgets/scoped/${name}`, {
        method,
        ...(method === 'PUT' ? { body: { limit_usd: 1 } } : {}),
      });
    await api.db('scoped_budget').delete();
    for (const name of names) expect((await put(name, 'PUT')).status).toBe(200);
    const [status, problem] = await readJson<Problem>(
      api.call('/v1/runs/bulk', { body: { runs: [{ pipeline: 'plain' }], budget_all_usd: 1 } }),
    );
    expect([status, problem.errors?.[0]]).toMatchObject([
      422,
      { pointer: '/budget_all_usd', message: expect.stringContaining('one call could match 9') },
    ]);
    for (const name of names) expect((await put(name, 'DELETE')).status).toBe(204);
  });
});

describe('runs with the same concurrency key', () => {
  test('above the limit wait their turn, in their order, and start when there is room', async () => {
    const job = { user: 'ann' };
    const runs: Run[] = [];
    for (let n = 0; n < 4; n++) runs.push((await submit({ pipeline: 'queued', job }))[1]);
    const ids = runs.map(({ run_id }) => run_id);
    const [other] = await submit({ pipeline: 'queued', job: { user: 'bob' } });
    expect(other).toBe(202);
    const admitted = async (): Promise<boolean[]> =>
      Promise.all(
        ids.map(
          async (run_id) =>
            (await api.db('run').where({ run_id }).first('admitted_at'))?.admitted_at !== null,
        ),
      );
    await waitFor('the first two', async () => (await isStarted(ids[0] ?? '')) && isStarted(ids[1] ?? ''));
    expect(await admitted()).toEqual([true, true, false, false]);
    await end(ids[1] ?? '');
    await waitFor('the third', () => isStarted(ids[2] ?? ''));
    expect(await admitted()).toEqual([true, true, true, false]);
  });

  test('a run that waits its turn is cancelled at once, and one that is paused lets others by', async () => {
    const job = { user: 'cid' };
    const runs: Run[] = [];
    for (let n = 0; n < 5; n++) runs.push((await submit({ pipeline: 'queued', job }))[1]);
    const [first, , third, fourth, fifth] = runs.map(({ run_id }) => run_id);
    const [, cancelled] = await readJson<Run>(api.call(`/v1/runs/${third}/cancel`, { method: 'POST' }));
    expect(cancelled).toMatchObject({ state: 'cancelled', started_at: null });
    await api.call(`/v1/runs/${fourth}/pause`, { method: 'POST' });
    await end(first ?? '');
    await waitFor('the fifth', () => isStarted(fifth ?? ''));
    await api.call(`/v1/runs/${fourth}/resume`, { method: 'POST' });
    expect(await isStarted(fourth ?? '')).toBe(false);
    await end(fifth ?? '');
    await waitFor('the fourth', () => isStarted(fourth ?? ''));
  });

  test('are refused above the limit where the definition asks for it, also in bulk and in parallel', async () => {
    const request = { pipeline: 'strict', job: { user: 'dan' } };
    const [, { items }] = await bulk([request, request, request]);
    expect(items.map(({ status }) => status)).toEqual([202, 202, 429]);
    expect(await submit(request)).toEqual([
      429,
      expect.objectContaining({
        code: 'concurrency_limit',
        detail: expect.stringContaining('at most 2 are allowed'),
      }),
    ]);
    const eve = { pipeline: 'strict', job: { user: 'eve' } };
    const answers = await Promise.all(Array.from({ length: 5 }, () => submit(eve)));
    expect(answers.map(([status]) => status).filter((status) => status === 202)).toHaveLength(2);
  });

  test('need the values that the key mentions', async () => {
    expect((await submit({ pipeline: 'queued', job: {} }))[1]).toMatchObject({ code: 'job_invalid' });
  });
});

describe('an alias', () => {
  test('stands for a version, may be moved, and latest follows what is stored', async () => {
    const steps = [{ id: 'a', capability: 'x' }];
    const path = '/v1/pipelines/aliased/aliases';
    for (const version of ['1', '2']) {
      await api.call('/v1/pipelines', { body: { pipeline: 'aliased', version, steps } });
    }
    const set = (alias: string, version: string) =>
      readJson(api.call(`${path}/${alias}`, { method: 'PUT', body: { version } }));
    const runOf = async (body: object) => (await submit({ pipeline: 'aliased', ...body }))[1].version;
    expect((await set('production', '1'))[0]).toBe(200);
    expect(await runOf({ alias: 'production' })).toBe('1');
    expect((await set('production', '2'))[0]).toBe(200);
    expect(
      await Promise.all([runOf({ alias: 'production' }), runOf({ alias: 'latest' }), runOf({})]),
    ).toEqual([...['2', '2', '2']]);
    const [, { items }] = await readJson<{ items: object[] }>(api.call(path));
    expect(items).toMatchObject([
      { alias: 'latest', version: '2' },
      { alias: 'production', version: '2' },
    ]);
    expect([
      await set('latest', '1'),
      await set('x', '9'),
      await submit({ pipeline: 'aliased', alias: 'y' }),
    ]).toEqual([
      [422, expect.objectContaining({ code: 'request_invalid' })],
      [404, expect.anything()],
      [404, expect.anything()],
    ]);
    expect((await api.call('/v1/pipelines/none/aliases')).status).toBe(404);
    const forget = async (alias: string) => (await api.call(`${path}/${alias}`, { method: 'DELETE' })).status;
    expect([await forget('production'), await forget('production'), await forget('latest')]).toEqual([
      ...[204, 404, 422],
    ]);
    expect((await submit({ pipeline: 'aliased', alias: 'production' }))[0]).toBe(404);
    expect(await runOf({})).toBe('2');
  });
});

describe('many runs by the filters of the list', () => {
  const label = { batch: 'many' };
  async function started(count: number): Promise<string[]> {
    const run = { pipeline: 'patient', labels: label, job: { clip: 'a' } };
    const runs = Array.from({ length: count }, () => run);
    const [, { items }] = await bulk(runs);
    return items.map(({ run_id }) => run_id ?? '');
  }
  /** Walks over all pages. */
  async function change(act: string, body: object = {}, headers: Record<string, string> = {}) {
    const items: RunActs['items'] = [];
    let cursor = '';
    for (;;) {
      const to = `/v1/runs/bulk/${act}&limit=2${cursor}`;
      const [status, page] = await readJson<RunActs>(api.call(to, { method: 'POST', body, headers }));
      expect(status).toBe(200);
      items.push(...page.items);
      if (page.next_cursor === null) return items;
      cursor = `&cursor=${page.next_cursor}`;
    }
  }
  const count = (query: string) => readJson<RunCount>(api.call(`/v1/runs/count?${query}`));

  test('are counted, cancelled, exported and run again once for a key, page by page', async () => {
    const ids = await started(5);
    expect(await count('label=batch=many')).toEqual([
      200,
      { count: 5, by_state: expect.objectContaining({}) },
    ]);

    const cancelled = await change('cancel?label=batch=many', { reason: 'wrong batch' });
    expect(cancelled.map(({ run_id }) => run_id).sort()).toEqual([...ids].sort());
    expect((await count('label=batch=many'))[1].by_state).toEqual({ cancelling: 5 });
    await Promise.all(
      ids.map((run_id) =>
        finishRun(api.db, { run_id, state: 'cancelled', output: null, error: null, step_ids: ['a'] }),
      ),
    );

    const exported = await api.call('/v1/runs/export?label=batch=many');
    const lines = (await exported.text()).trim().split('\n');
    const shown = lines
      .map((line) => JSON.parse(line))
      .map(({ state, steps, job }) => [state, steps.length, job]);
    expect(shown).toEqual(ids.map(() => ['cancelled', 1, { clip: 'a' }]));

    const key = { 'idempotency-key': 'again' };
    const once = await change('rerun?label=batch=many&state=cancelled', { budget_ceiling_usd: 3 }, key);
    const twice = await change('rerun?label=batch=many&state=cancelled', { budget_ceiling_usd: 3 }, key);
    expect(twice).toEqual(once);
    expect(once.map(({ run_id }) => run_id).sort()).toEqual([...ids].sort());
    expect(await count('label=batch=many')).toEqual([200, expect.objectContaining({ count: 10 })]);
    const [, again] = await readJson<Run>(api.call(`/v1/runs/${once[0]?.new_run_id}`));
    expect(again).toMatchObject({ budget_ceiling_usd: 3, labels: label, rerun_of: once[0]?.run_id });
  });

  test('are chosen by id, repeated with other terms more than once, and kept in the audit log', async () => {
    const [first = '', second = '', third = ''] = await started(3);
    for (const id of [first, second]) await end(id);
    const to = `rerun?run_id=${first},${second},run_of_another`;
    const again = await change(to, { priority: 'batch', budget_ceiling_usd: 0.5 });
    expect(again.map(({ run_id }) => run_id)).toEqual([second, first]);
    const [, run] = await readJson<Run>(api.call(`/v1/runs/${again[0]?.new_run_id}`));
    expect(run).toMatchObject({ priority: 'batch', budget_ceiling_usd: 0.5, rerun_of: second });
    expect(await change(to)).toHaveLength(2);
    const refused = await change(`rerun?run_id=${third}`);
    expect(refused).toMatchObject([{ run_id: third, status: 409 }]);
    const [, { items }] = await readJson<{ items: AuditEntry[] }>(api.call('/v1/audit?subject=runs&limit=3'));
    const entry = { actor: expect.stringMatching(/^key_/), action: 'runs.repeated', subject: 'runs' };
    expect(items).toMatchObject([
      { ...entry, data: { runs: [], refused: [third] } },
      { ...entry, data: { runs: [second, first], new_runs: [expect.any(String), expect.any(String)] } },
      {
        ...entry,
        data: {
          filter: {},
          request: { priority: 'batch', budget_ceiling_usd: 0.5 },
          runs: [second, first],
          refused: [],
        },
      },
    ]);
    expect((await api.call('/v1/runs/bulk/rerun?run_id=', { method: 'POST', body: {} })).status).toBe(422);
  });

  test('are changed each on its own: those in the wrong state are refused with its reason', async () => {
    const [open = ''] = await started(1);
    const [, { run_id: ended = '' }] = await submit({ pipeline: 'plain', job: {}, labels: label });
    await end(ended);
    const acts = await change('cancel?label=batch=many&pipeline=plain');
    expect(acts).toEqual([
      { status: 409, run_id: ended, error: expect.objectContaining({ code: 'state_conflict' }) },
    ]);
    expect((await readJson<Run>(api.call(`/v1/runs/${open}`)))[1].state).not.toBe('cancelled');
  });

  test('are raised: open ones continue, those that failed for their budget in a new run', async () => {
    const labels = { batch: 'raised' };
    const start = async (body: object) => (await submit({ pipeline: 'patient', labels, ...body }))[1].run_id;
    const open = await start({ budget_ceiling_usd: 1 });
    const [poor, wrong] = [await start({ budget_ceiling_usd: 1 }), await start({ budget_ceiling_usd: 1 })];
    const [rich, free] = [await start({ budget_ceiling_usd: 9 }), await start({})];
    for (const [run_id, code] of [[poor, 'budget_exhausted'] as const, [wrong, 'timeout'] as const]) {
      const error = { code: 'step_failed', message: 'step a', details: { step_id: 'a', code } };
      await finishRun(api.db, { run_id, state: 'failed', output: null, error, step_ids: ['a'] });
    }
    const key = { 'idempotency-key': 'raise' };
    const raise = () =>
      change('raise?label=batch=raised&until=2999-01-01T00:00:00Z', { budget_ceiling_usd: 3 }, key);
    const acts = new Map((await raise()).map((act) => [act.run_id, act]));
    expect(acts.get(open)).toEqual({ status: 202, run_id: open });
    expect((await readJson<Run>(api.call(`/v1/runs/${open}`)))[1].budget_ceiling_usd).toBe(3);
    const next = acts.get(poor)?.new_run_id;
    expect((await readJson<Run>(api.call(`/v1/runs/${next}`)))[1]).toMatchObject({
      budget_ceiling_usd: 3,
      rerun_of: poor,
    });
    const details = [wrong, rich, free].map((id) => acts.get(id)?.error?.detail);
    expect(details).toEqual([
      expect.stringContaining('failed; only one that is open, or that failed for its budget, can be raised'),
      expect.stringContaining('has a ceiling of 9 USD; 3 does not raise it'),
      expect.stringContaining('has no ceiling; 3 does not raise it'),
    ]);
    const again = (await raise()).find(({ run_id }) => run_id === poor);
    expect(again?.new_run_id).toBe(next);
  });

  test('are raised to the higher ceiling of two at once', async () => {
    const labels = { batch: 'twice' };
    const [, { run_id }] = await submit({ pipeline: 'patient', labels, budget_ceiling_usd: 1 });
    const raise = (budget_ceiling_usd: number) => change('raise?label=batch=twice', { budget_ceiling_usd });
    const waiting = async () => {
      const { rows } = await api.db.raw(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query like '%budget_version%'`,
      );
      return rows.length;
    };
    const acts: Promise<RunActs['items']>[] = [];
    await api.db.transaction(async (trx) => {
      await trx('run').where({ run_id }).forUpdate().first();
      for (const [at, usd] of [5, 3].entries()) {
        acts.push(raise(usd)); // it has read the run, and waits to change it
        await waitFor('it to wait for the run', async () => (await waiting()) > at);
      }
    });
    const [higher, lower] = await Promise.all(acts);
    expect(higher).toEqual([{ status: 202, run_id }]);
    expect(lower).toEqual([
      {
        status: 409,
        run_id,
        error: expect.objectContaining({
          code: 'state_conflict',
          detail: `run ${run_id} has a ceiling of 5 USD; 3 does not raise it`,
        }),
      },
    ]);
    expect((await readJson<Run>(api.call(`/v1/runs/${run_id}`)))[1].budget_ceiling_usd).toBe(5);
  });

  test('need a filter, because none would mean every run', async () => {
    for (const act of ['cancel', 'rerun', 'raise']) {
      const [status, problem] = await readJson(
        api.call(`/v1/runs/bulk/${act}`, {
          method: 'POST',
          body: act === 'raise' ? { budget_ceiling_usd: 1 } : {},
        }),
      );
      expect([status, problem]).toEqual([
        422,
        expect.objectContaining({ detail: expect.stringContaining('give a filter') }),
      ]);
    }
  });
});

describe('runs that another run repeats', () => {
  async function twoFailed(batch: string): Promise<string[]> {
    const ids: string[] = [];
    for (const n of [1, 2]) {
      const [, { run_id }] = await submit({ pipeline: 'plain', job: { n }, labels: { batch } });
      await finishRun(api.db, { run_id, state: 'failed', output: undefined, error: null, step_ids: ['a'] });
      ids.push(run_id);
    }
    return ids;
  }

  function rerunAll(batch: string, more = '', headers: Record<string, string> = {}) {
    const path = `/v1/runs/bulk/rerun?state=failed&label=batch%3D${batch}${more}`;
    return readJson<RunActs>(api.call(path, { body: { only_failed: true }, headers }));
  }

  const repeatsOf = (acts: RunActs) => acts.items.map(({ run_id }) => run_id).sort();
  const newIds = (acts: RunActs) => acts.items.map(({ new_run_id }) => new_run_id).sort();

  test('are repeated once, however often and at once all that failed are', async () => {
    const ids = await twoFailed('night');
    const both = await Promise.all([rerunAll('night'), rerunAll('night')]);
    const started = both.flatMap(([, { items }]) => items.filter(({ status }) => status === 202));
    expect(started.map(({ run_id }) => run_id).sort()).toEqual(ids);
    expect((await rerunAll('night'))[1].items).toEqual([]);
    for (const { run_id, new_run_id } of started) {
      const [, old] = await readJson<Run>(api.call(`/v1/runs/${run_id}`));
      expect([old.superseded_by, old.state]).toEqual([new_run_id, 'failed']);
    }
    // A rerun that fails is repeated itself; those before it are not.
    const [second = ''] = started.map(({ new_run_id }) => new_run_id ?? '');
    await finishRun(api.db, {
      run_id: second,
      state: 'failed',
      output: undefined,
      error: null,
      step_ids: ['a'],
    });
    expect(repeatsOf((await rerunAll('night'))[1])).toEqual([second]);
  });

  test('are returned again by a repeated request with a key, and are left out with another key', async () => {
    await twoFailed('keyed');
    const key = { 'idempotency-key': 'night-1' };
    const [, first] = await rerunAll('keyed', '', key);
    const [, again] = await rerunAll('keyed', '', key);
    expect([newIds(again), first.items.length]).toEqual([newIds(first), 2]);
    expect((await rerunAll('keyed', '', { 'idempotency-key': 'night-2' }))[1].items).toEqual([]);
  });

  test('are repeated again if that is asked for, and lists and counts distinguish them', async () => {
    const [one = '', two = ''] = await twoFailed('asked');
    await api.call(`/v1/runs/${one}/rerun`, { body: { only_failed: true } });
    const list = async (superseded: string): Promise<string[]> => {
      const path = `/v1/runs?state=failed&label=batch%3Dasked&superseded=${superseded}`;
      const [, { items }] = await readJson<{ items: Run[] }>(api.call(path));
      return items.map(({ run_id }) => run_id).sort();
    };
    expect([await list('none'), await list('only'), await list('any')]).toEqual([[two], [one], [one, two]]);
    const count = `/v1/runs/count?state=failed&label=batch%3Dasked&superseded=none`;
    expect((await readJson<RunCount>(api.call(count)))[1].count).toBe(1);
    expect(repeatsOf((await rerunAll('asked', '&superseded=only'))[1])).toEqual([one]);
    expect(repeatsOf((await rerunAll('asked', '&superseded=any'))[1])).toEqual([one, two]);
  });

  test('are not raised a second time', async () => {
    const [, { run_id }] = await submit({ pipeline: 'checked', job: { n: 1 }, labels: { batch: 'poor' } });
    const error = { code: 'step_failed', message: 'm', details: { step_id: 'a', code: 'budget_exhausted' } };
    await finishRun(api.db, { run_id, state: 'failed', output: undefined, error, step_ids: ['a'] });
    const raise = () =>
      readJson<RunActs>(
        api.call('/v1/runs/bulk/raise?state=failed&label=batch%3Dpoor', { body: { budget_ceiling_usd: 9 } }),
      );
    expect(repeatsOf((await raise())[1])).toEqual([run_id]);
    expect((await raise())[1].items).toEqual([]);
  });
});
