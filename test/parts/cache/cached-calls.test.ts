import { Readable } from 'node:stream';
import { CancelSource } from '@capstan/core/cancellation';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { aProject, aRun, type RunOverrides } from '../../support/factories.ts';
import { answer, echo, type Instance } from '../../support/fleet.ts';
import { isLong } from '../../support/long.ts';
import { stepsOf, useSteps, type Worker } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();
const { db } = world;
let workers: Worker[] = [];
let instance: Instance;
let count = 0;

beforeEach(async () => {
  count += 1;
  instance = await world.register({
    name: `paid${count}`,
    cost_model: { type: 'per_call', rate_usd: 0.25 },
    deterministic: true,
    max_concurrency: 100,
  });
});
afterEach(() => {
  for (const { close } of workers) close();
  workers = [];
});

function aWorker(): Worker {
  const worker = world.newWorker();
  workers.push(worker);
  return worker;
}

const cache = { ttl: '1h' };

function aCachedRun(step: Partial<StepDefinition> = {}, more: RunOverrides = {}) {
  const a = { id: 'a', capability: `paid${count}`, input: { n: 1 }, cache, ...step };
  return aRun(db, { project_id: world.projectId(), ...more, ...stepsOf([a]) });
}

async function put(reference: string, text: string): Promise<string> {
  const [, , job_id = '', file = ''] = reference.split('/');
  const options = { contentType: 'text/plain', limitBytes: 1_000 };
  await world.media().put({ job_id, file }, Readable.from([Buffer.from(text)]), options);
  return reference;
}

async function read(reference: string): Promise<string | null> {
  const [, , job_id = '', file = ''] = reference.split('/');
  const opened = await world.media().open({ job_id, file });
  return opened === null ? null : Buffer.concat(await (await opened.read()).toArray()).toString();
}

/** Copies its text to where it is asked to, in capitals. */
function shout(): void {
  instance.handle = async ({ input }, response) => {
    const { text, output_path } = input as Record<string, string>;
    await put(output_path ?? '', ((await read(text ?? '')) ?? '').toUpperCase());
    answer(response, 200, { ok: true, output: { output_path, of: text } });
  };
}

it('the second of two equal calls is not made: an attempt of its own kind, free, with its origin', async () => {
  const [first, second] = [await aCachedRun(), await aCachedRun()];
  expect(await aWorker().execute(first, 'a')).toMatchObject({ attempt: { cost_usd: 0.25, number: 1 } });
  const end = await aWorker().execute(second, 'a');
  expect(end).toMatchObject({
    kind: 'succeeded',
    output: { n: 1 },
    attempt: { number: 1, cost_usd: 0, endpoint: instance.endpoint },
  });
  expect(instance.execs).toHaveLength(1);
  const [made] = await db('attempt').where({ run_id: first.run_id });
  const [attempt] = await db('attempt').where({ run_id: second.run_id });
  expect(attempt).toMatchObject({
    state: 'cached',
    settled_nano: '0',
    saved_nano: '250000000',
    cached_from: { run_id: first.run_id, step_id: 'a', attempt_id: made.attempt_id, saved_usd: 0.25 },
  });
  expect(await world.eventsOf(second)).toEqual([
    'run.queued',
    'run.started',
    'step.started a',
    'step.cached a',
    'step.succeeded a',
  ]);
});

it('equal calls in parallel are one call, in this process and in others', async () => {
  const runs = await Promise.all(Array.from({ length: 6 }, () => aCachedRun()));
  const processes = [aWorker(), aWorker()];
  let release = (): void => undefined;
  instance.handle = (exec, response) => {
    release = () => void echo(exec, response);
  };
  const ends = runs.map((run, at) => processes[at % 2]?.execute(run, 'a'));
  await waitFor('the call', () => instance.execs.length > 0);
  release();
  const costs = (await Promise.all(ends)).map((end) =>
    end?.kind === 'succeeded' ? end.attempt?.cost_usd : null,
  );
  expect(costs.sort()).toEqual([0, 0, 0, 0, 0, 0.25]);
  expect(instance.execs).toHaveLength(1);
});

describe('a leader that comes to nothing', () => {
  it('makes room for the next, who makes the call', async () => {
    const [first, second, third] = [await aCachedRun(), await aCachedRun(), await aCachedRun()];
    let refuse = (): void => undefined;
    instance.handle = (_exec, response) => {
      refuse = () => answer(response, 422, { ok: false, error: 'not now' });
    };
    const led = aWorker().execute(first, 'a');
    await waitFor('the call', () => instance.execs.length > 0);
    const worker = aWorker();
    const others = [second, third].map((run) => worker.execute(run, 'a'));
    instance.handle = echo;
    refuse();
    expect(await led).toMatchObject({ kind: 'failed' });
    for (const end of await Promise.all(others)) expect(end).toMatchObject({ kind: 'succeeded' });
    expect(instance.execs).toHaveLength(2);
  });

  it('is not waited for by all of them one after the other', async () => {
    instance.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'never' });
    const runs = await Promise.all(Array.from({ length: 5 }, () => aCachedRun()));
    const worker = aWorker();
    const ends = await Promise.all(runs.map((run) => worker.execute(run, 'a')));
    expect(ends.map(({ kind }) => kind)).toEqual(['failed', 'failed', 'failed', 'failed', 'failed']);
    expect(instance.execs).toHaveLength(5);
    expect(await db('cached_result').where({ capability: `paid${count}` })).toEqual([]);
  });

  it('has gone with its process: a waiting call continues when its lease has ended', async () => {
    const [first, second] = [await aCachedRun(), await aCachedRun()];
    let isLost = false;
    instance.handle = (exec, response) => (isLost ? echo(exec, response) : undefined);
    const lost = aWorker().execute(first, 'a');
    await waitFor('the call', () => instance.execs.length > 0);
    const waiting = aWorker().execute(second, 'a');
    isLost = true;
    // As maintenance leaves the attempt of a process that was killed, some seconds later.
    await db('attempt')
      .where({ run_id: first.run_id })
      .update({
        state: 'lost',
        finished_at: db.raw("clock_timestamp() - interval '11 seconds'"),
      });
    await db('cached_result')
      .where({ run_id: first.run_id })
      .update({ led_at: db.raw("clock_timestamp() - interval '11 seconds'") });
    expect(await waiting).toMatchObject({ kind: 'succeeded', attempt: { cost_usd: 0.25 } });
    await instance.stop();
    await lost;
  });

  it('of a run that was cancelled makes room too', async () => {
    const [first, second] = [await aCachedRun(), await aCachedRun()];
    instance.handle = () => undefined;
    const source = new CancelSource();
    const led = aWorker().execute(first, { step_id: 'a', signal: source });
    await waitFor('the call', () => instance.execs.length > 0);
    const waiting = aWorker().execute(second, 'a');
    instance.handle = echo;
    source.abort('cancelled');
    expect(await led).toEqual({ kind: 'cancelled' });
    expect(await waiting).toMatchObject({ kind: 'succeeded', attempt: { cost_usd: 0.25 } });
  });
});

describe('a database that is not there for a moment', () => {
  /** Ends as many of the statements that wait for a lock, or fewer when all is over before; the others have it then. */
  async function endThoseThatWait(lock: string, most: number, begin: () => readonly Promise<StepEnd>[]) {
    const holder = await db.transaction();
    await holder.raw(`lock table ${lock}`);
    let isOver = false;
    const ending = Promise.allSettled(begin()).finally(() => {
      isOver = true;
    });
    const ended = new Set<string>();
    await waitFor('statements to be ended', async () => {
      const { rows } = await db.raw(
        `select pid || ' ' || query_start as statement, pg_cancel_backend(pid) from pg_stat_activity
         where wait_event_type = 'Lock' and datname = current_database()`,
      );
      for (const { statement } of rows) ended.add(statement);
      return isOver || ended.size >= most;
    });
    await holder.rollback();
    return ending;
  }

  it.each([
    ['looked up', 'cached_result in access exclusive mode'],
    ['claimed', 'instance in exclusive mode'],
  ])('keeps equal calls from being %s: none is made, all come again, and one is made', async (_, lock) => {
    const runs = await Promise.all(Array.from({ length: 5 }, () => aCachedRun()));
    const worker = aWorker();
    for (const { run_id } of runs) await worker.decide({ run_id, step_ids: ['a'] });
    const ends = await endThoseThatWait(lock, 2, () => runs.map((run) => worker.execute(run, 'a')));
    for (const end of ends) expect(end).toMatchObject({ status: 'rejected', reason: { code: '57014' } });
    expect(instance.execs).toHaveLength(0);
    await Promise.all(runs.map((run) => worker.execute(run, { step_id: 'a', round: 2 })));
    expect(instance.execs).toHaveLength(1);
  });

  it('keeps a result from being kept: who waits for it comes again instead of paying too', async () => {
    const runs = await Promise.all(Array.from({ length: 3 }, () => aCachedRun()));
    const worker = aWorker();
    let answerNow = (): void => undefined;
    instance.handle = (exec, response) => {
      answerNow = () => void echo(exec, response);
    };
    const executing = runs.map((run) => worker.execute(run, 'a'));
    await waitFor('the call', () => instance.execs.length > 0);
    const ends = await endThoseThatWait('cached_result in access exclusive mode', 2, () => {
      answerNow();
      return executing;
    });
    expect(ends.map((end) => (end.status === 'rejected' ? end.reason.code : end.value.kind)).sort()).toEqual([
      '57014',
      '57014',
      'succeeded',
    ]);
    expect(instance.execs).toHaveLength(1);
  });

  it('keeps a key from being read: the call is not made without', async () => {
    const { job_id } = await aRun(db, { project_id: world.projectId() });
    const reference = await put(`media://${job_id}/in.txt`, 'hello');
    const run = await aCachedRun({ input: { text: reference } });
    const worker = aWorker();
    await worker.decide({ run_id: run.run_id, step_ids: ['a'] });
    const [end] = await endThoseThatWait('job in access exclusive mode', 1, () => [worker.execute(run, 'a')]);
    expect(end).toMatchObject({ status: 'rejected', reason: { code: '57014' } });
    expect(instance.execs).toHaveLength(0);
    expect(await worker.execute(run, { step_id: 'a', round: 2 })).toMatchObject({ kind: 'succeeded' });
  });
});

describe('files', () => {
  const input = { text: '{{ job.text }}', output_path: 'media://{{ run.job_id }}/out.txt' };

  /** A run whose job has a text. */
  async function aShout(text: string, file = 'in.txt') {
    const run = await aCachedRun({ input }, { job: {} });
    await put(`media://${run.job_id}/${file}`, text);
    await db('job')
      .where({ job_id: run.job_id })
      .update({ body: JSON.stringify({ text: `media://${run.job_id}/${file}` }) });
    return run;
  }

  it('are put where they are asked for, and the output names them there', async () => {
    shout();
    const [first, second] = [await aShout('hello'), await aShout('hello', 'other.txt')];
    await aWorker().execute(first, 'a');
    expect(await aWorker().execute(second, 'a')).toMatchObject({
      attempt: { cost_usd: 0 },
      output: { output_path: `media://${second.job_id}/out.txt`, of: `media://${second.job_id}/other.txt` },
    });
    expect(await read(`media://${second.job_id}/out.txt`)).toBe('HELLO');
    await put(`media://${first.job_id}/out.txt`, 'replaced');
    expect(await read(`media://${second.job_id}/out.txt`)).toBe('HELLO');
    expect(instance.execs).toHaveLength(1);
  });

  it.each([
    ['that have other bytes', 'hallo', (job: string) => put(`media://${job}/unrelated`, 'x')],
    ['whose result has gone', 'hello', (job_id: string) => world.media().delete({ job_id, file: 'out.txt' })],
    ['whose result was changed since', 'hello', (job: string) => put(`media://${job}/out.txt`, 'edited')],
  ])('%s make another call', async (_, text, meddle) => {
    shout();
    const [first, second] = [await aShout('hello'), await aShout(text)];
    await aWorker().execute(first, 'a');
    await meddle(first.job_id);
    expect(await aWorker().execute(second, 'a')).toMatchObject({ attempt: { cost_usd: 0.25 } });
    expect(await read(`media://${second.job_id}/out.txt`)).toBe(text.toUpperCase());
    expect(await aWorker().execute(await aShout(text), 'a')).toMatchObject({ attempt: { cost_usd: 0 } });
  });

  it('that were exchanged while the call was made are no part of what is kept', async () => {
    const first = await aShout('hello');
    instance.handle = async ({ input }, response) => {
      const { text = '', output_path = '' } = input as Record<string, string>;
      await put(text, 'exchanged');
      await put(output_path, 'EXCHANGED');
      answer(response, 200, { ok: true, output: { output_path } });
    };
    expect(await aWorker().execute(first, 'a')).toMatchObject({ kind: 'succeeded' });
    shout();
    const second = await aShout('hello');
    expect(await aWorker().execute(second, 'a')).toMatchObject({ attempt: { cost_usd: 0.25 } });
    expect(await read(`media://${second.job_id}/out.txt`)).toBe('HELLO');
  });

  it('of another project are neither read nor written', async () => {
    const { job_id } = await aRun(db);
    await put(`media://${job_id}/secret`, 'hello');
    const run = await aCachedRun({ input: { text: 'x', output_path: `media://${job_id}/secret` } });
    expect(await aWorker().execute(run, 'a')).toMatchObject({
      kind: 'failed',
      error: { code: 'media_unknown' },
    });
    expect(await db('cached_result').where({ capability: `paid${count}` })).toEqual([]);
  });
});

it('another project pays for itself', async () => {
  const { project_id } = await aProject(db);
  await aWorker().execute(await aCachedRun(), 'a');
  const other = await aCachedRun({}, { project_id });
  expect(await aWorker().execute(other, 'a')).toMatchObject({ attempt: { cost_usd: 0.25 } });
});

it.each([
  ['run', { pipeline: 'trailer' }, 0.25],
  ['pipeline', { pipeline: 'teaser' }, 0.25],
  ['pipeline', { pipeline: 'trailer' }, 0],
  ['project', { pipeline: 'teaser' }, 0],
] as const)('within a %s, a call of %j costs %f', async (scope, { pipeline }, cost_usd) => {
  const step = { id: 'a', capability: `paid${count}`, cache: { ...cache, scope } };
  const runIn = (name: string) =>
    aRun(db, { project_id: world.projectId(), ...stepsOf([step], { pipeline: name }) });
  await aWorker().execute(await runIn('trailer'), 'a');
  expect(await aWorker().execute(await runIn(pipeline), 'a')).toMatchObject({ attempt: { cost_usd } });
});

it.each([
  ['has another input', { input: { n: 2 } }],
  ['wants a younger one', { cache: { ttl: '1ms' } }],
  ['does not set cache', { cache: { ttl: '0s' } }],
])('a step that %s makes its call', async (_, step) => {
  await aWorker().execute(await aCachedRun(), 'a');
  expect(await aWorker().execute(await aCachedRun(step), 'a')).toMatchObject({ attempt: { cost_usd: 0.25 } });
});

it('a capability that is not declared deterministic is called, unless the author insists', async () => {
  const whim = await world.register({ name: 'whim', deterministic: false });
  const paid = (step: Partial<StepDefinition>) => aCachedRun({ capability: 'whim', ...step });
  for (const _ of [1, 2]) await aWorker().execute(await paid({}), 'a');
  expect(whim.execs).toHaveLength(2);
  for (const _ of [1, 2]) await aWorker().execute(await paid({ cache: { ...cache, insist: true } }), 'a');
  expect(whim.execs).toHaveLength(3);
});

it('a step that insists on tags takes no result of an instance that another step’s tags allowed', async () => {
  const name = 'placed';
  const spec = { name, deterministic: true };
  const eu = await world.register({ ...spec, tags: ['eu'] });
  const us = await world.register({ ...spec, tags: ['us'] });
  const execute = async (tags: string[]) =>
    aWorker().execute(await aCachedRun({ capability: name, tags }), 'a');
  for (const tags of [['eu'], ['us'], ['us'], ['eu']]) await execute(tags);
  expect([eu.execs.length, us.execs.length]).toEqual([1, 1]);
});

it('an answer of an instance of another project is kept only where no tags are required', async () => {
  const name = 'foreign';
  const foreign = await world.register({ name, deterministic: true, tags: ['eu'] });
  const { project_id } = await aProject(db);
  await db('instance').where({ name }).update({ owner_project: project_id });
  const execute = async (tags: string[]) =>
    aWorker().execute(await aCachedRun({ capability: name, tags }), 'a');
  for (const tags of [['eu'], ['eu'], [], []]) await execute(tags);
  expect(foreign.execs).toHaveLength(3);
});

it('a result goes with the run that made it', async () => {
  const first = await aCachedRun();
  await aWorker().execute(first, 'a');
  await db('run').where({ run_id: first.run_id }).delete();
  expect(await db('cached_result').where({ capability: `paid${count}` })).toEqual([]);
});

it('many equal items make one call', async () => {
  const items = Array.from({ length: isLong ? 200 : 60 }, (_, at) => at);
  const run = await aCachedRun({ for_each: { items } });
  const worker = aWorker();
  const ends = await Promise.all(
    items.map((at) => worker.execute(run, { step_id: 'a', item: at + 1, remainingMs: 60_000 })),
  );
  expect(ends.every(({ kind }) => kind === 'succeeded')).toBe(true);
  expect(instance.execs).toHaveLength(1);
});

it('a cached step asks the database for its key and takes its result, without choosing an instance', async () => {
  await aWorker().execute(await aCachedRun(), 'a');
  const run = await aCachedRun();
  const asked: string[] = [];
  const note = ({ sql }: { readonly sql: string }): void => void asked.push(sql);
  const worker = aWorker();
  await worker.decide({ run_id: run.run_id, step_ids: ['a'] }); // it has read the run
  db.on('query', note);
  await worker.execute(run, 'a');
  db.off('query', note);
  expect(instance.execs).toHaveLength(1);
  expect(asked.filter((sql) => sql.includes('settle_and_claim'))).toEqual([]);
  expect(asked).toHaveLength(2);
});

it('a step without cache makes no further statement', async () => {
  const run = await aRun(db, stepsOf([{ id: 'a', capability: `paid${count}` }], {}));
  const asked: string[] = [];
  const note = ({ sql }: { readonly sql: string }): void => void asked.push(sql);
  db.on('query', note);
  await aWorker().execute(run, 'a');
  db.off('query', note);
  expect(asked.filter((sql) => sql.includes('cached_result'))).toEqual([]);
});
