/** Secrets in the calls of steps: an instance receives the value, and everything that is stored holds the reference. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { CancelSource } from '@capstan/core/cancellation';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Caller } from '../../../src/use-cases/access/caller.ts';
import { receiveLaterAnswer } from '../../../src/use-cases/callbacks/receipt.ts';
import { readAttempt } from '../../../src/use-cases/routing/later-calls.ts';
import { deleteSecret, setSecret } from '../../../src/use-cases/secrets/secrets.ts';
import { executeRevision, executeStep } from '../../../src/use-cases/steps/execution.ts';
import { aProject, aRun, type StoredRun } from '../../support/factories.ts';
import { answer, type Instance } from '../../support/fleet.ts';
import { stepsOf, useSteps, type Worker } from '../../support/steps.ts';
import { tablesNaming } from '../../support/tables.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps({
  PAYLOAD_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  PUBLIC_URL: 'http://capstan.test',
});
const { db } = world;
const value = 'the-value-of-the-token';

let worker: Worker;
let instance: Instance;
let count = 0;
let capability = '';
beforeEach(async () => {
  count += 1;
  capability = `publish${count}`;
  instance = await world.register({ name: capability, deterministic: true });
  worker = world.newWorker();
  await set();
});
afterEach(() => worker.close());

function caller(): Caller {
  return { project_id: world.projectId(), key_id: 'key_1' } as Caller;
}

function set(more: { value?: string; capabilities?: string[]; hosts?: string[] } = {}) {
  const secret = { name: 'token', value, capabilities: ['publish*'], hosts: [], ...more };
  return setSecret(worker.ctx, caller(), secret);
}

const written = { auth: 'Bearer {{ secrets.token }}', forged: '{{ job.forged }}' };
const shown = { auth: 'Bearer [secret token]', forged: '[secret token]' };
const sent = { auth: `Bearer ${value}`, forged: '[secret token]' };

function aSecretRun(step: Partial<StepDefinition> = {}): Promise<StoredRun> {
  const a = { id: 'a', capability, input: written, ...step };
  const job = { forged: '[secret token]' };
  return aRun(db, { project_id: world.projectId(), job, ...stepsOf([a]) });
}

const control = () => ({ round: 1, remainingMs: 20_000, signal: new CancelSource() });

/** All rows of a run, as text. */
async function rowsOf({ run_id }: StoredRun): Promise<string> {
  const tables = ['step', 'attempt', 'event', 'cached_result'];
  const rows = await Promise.all(tables.map((table) => db(table).where({ run_id })));
  return JSON.stringify(rows);
}

describe('a step with a secret', () => {
  it('sends the value to the instance, and stores the reference, also of what the instance repeats', async () => {
    const run = await aSecretRun();
    expect(await worker.execute(run, 'a')).toMatchObject({ kind: 'succeeded', output: shown });
    expect(instance.execs.map(({ input }) => input)).toEqual([sent]);
    const rows = await rowsOf(run);
    expect(rows).not.toContain(value);
    expect(rows).toContain('Bearer [secret token]');
  });

  it('does not resolve a reference that comes from the job, an item or an answer', async () => {
    const run = await aSecretRun({
      input: { auth: '{{ secrets.token }}', item: '{{ item }}', all: '{{ job }}' },
      for_each: { items: ['[secret token]', '{{ "{{ secrets.token }}" }}'] },
    });
    await worker.execute(run, { step_id: 'a', item: 1 });
    expect(instance.execs.map(({ input }) => input)).toEqual([
      { auth: value, item: '[secret token]', all: { forged: '[secret token]' } },
    ]);
  });

  it('hides the value in the error of a refusal, also at the end of a long text that is cut off', async () => {
    instance.handle = (_, response) =>
      answer(response, 422, { ok: false, error: `${'x'.repeat(8_180)}${value}` });
    const run = await aSecretRun();
    const end = await worker.execute(run, 'a');
    expect(end).toMatchObject({ kind: 'failed', error: { code: 'input_rejected' } });
    expect(JSON.stringify(end) + (await rowsOf(run))).not.toContain(value.slice(0, 12));
  });

  it.each([
    ['the output', { ok: true, output: { text: `Bearer ${value}` } }],
    ['a refusal', { ok: false, error: `wrong: ${value}` }],
    ['what is no JSON', `<html>${value}`],
  ])('hides the value in %s that comes later', async (_, body) => {
    const name = `${capability}.later`;
    const slow = await world.register({ name, deterministic: true, async: { slot: 'held' } });
    slow.handle = (_, response) => answer(response, 202, {});
    const run = await aSecretRun({ capability: name, retry: { max: 0 }, escalate: { enabled: false } });
    expect(await worker.execute(run, 'a')).toMatchObject({ kind: 'waiting', awaiting: 'callback' });
    const address = String(slow.execs[0]?.headers['x-callback-url']);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    await receiveLaterAnswer(worker.ctx, address.split('/').at(-1) ?? '', Readable.from([Buffer.from(text)]));
    expect(await tablesNaming(db, value)).toEqual([]);
    const { attempt_id } = await db('attempt').where({ run_id: run.run_id }).first();
    const keyless = readAttempt({ db, secretCipher: null }, attempt_id);
    await expect(keyless).rejects.toMatchObject({ code: 'unavailable' });
    const ended = await worker.execute(run, { step_id: 'a', resumed: true });
    expect(JSON.stringify(ended)).toContain('[secret token]');
    expect(await tablesNaming(db, value)).toEqual([]);
    expect(await db('callback_answer').whereNotNull('body')).toEqual([]);
  });

  it('hides the value in a text that is no JSON, and in the code of an error', async () => {
    await set({ value: 'token_in_a_code' });
    instance.handle = (_, response) => {
      response.writeHead(422, { 'content-type': 'application/json', 'x-error-code': 'token_in_a_code' });
      response.end('no: token_in_a_code');
    };
    const run = await aSecretRun();
    const end = await worker.execute(run, 'a');
    expect(end.kind).toBe('failed');
    expect(JSON.stringify(end) + (await rowsOf(run))).not.toContain('token_in_a_code');
  });

  it.each([200, 502])('hides the value in a header that an error quotes (HTTP %i)', async (status) => {
    await set({ value: 'token_in_a_header' });
    instance.handle = (_, response) => {
      response.writeHead(status, { 'content-type': 'text/token_in_a_header', location: 'token_in_a_header' });
      response.end('token_in_a_header');
    };
    const run = await aSecretRun();
    const end = await worker.execute(run, 'a');
    expect(end.kind).toBe('retry');
    expect(JSON.stringify(end) + (await rowsOf(run))).not.toContain('token_in_a_header');
  });

  it('may get an answer of 4 MiB, in which the value is searched, and no larger one', async () => {
    instance.handle = (_, response) =>
      answer(response, 200, { ok: true, output: { text: `${value}${'x'.repeat(4_000_000)}` } });
    const end = await worker.execute(await aSecretRun(), 'a');
    expect(end).toMatchObject({ output: { text: expect.stringMatching(/^\[secret token\]x/) } });
    instance.handle = (_, response) =>
      answer(response, 200, { ok: true, output: { text: 'x'.repeat(5_000_000) } });
    expect(await worker.execute(await aSecretRun(), 'a')).toMatchObject({
      kind: 'failed',
      error: { code: 'output_too_large' },
    });
  });

  it('is asked for no parts of its text, which could split the value', async () => {
    await worker.execute(await aSecretRun(), 'a');
    expect(instance.execs[0]?.headers['x-stream']).toBeUndefined();
  });

  it('records each use, without the value', async () => {
    const run = await aSecretRun();
    await worker.execute(run, 'a');
    const entries = await db('audit').where({ action: 'secret.used', actor: run.run_id });
    expect(entries).toMatchObject([
      {
        project_id: world.projectId(),
        subject: 'token',
        data: {
          version: expect.any(Number),
          run_id: run.run_id,
          step_id: 'a',
          item: 0,
          attempt: 1,
          endpoint: instance.endpoint,
        },
      },
    ]);
    expect((await db('secret').where({ name: 'token' }).first()).last_used_at).toBeInstanceOf(Date);
  });

  it('is not sent while its use cannot be recorded', async () => {
    const run = await aSecretRun();
    await db.raw('alter table audit rename to audit_away');
    try {
      expect(await worker.execute(run, 'a')).toMatchObject({ kind: 'retry' });
    } finally {
      await db.raw('alter table audit_away rename to audit');
    }
    expect(instance.execs).toEqual([]);
    expect(await worker.execute(run, { step_id: 'a', round: 2 })).toMatchObject({ kind: 'succeeded' });
  });
});

describe('an instance of another project', () => {
  async function moveAway(): Promise<void> {
    const { project_id } = await aProject(db);
    await db('instance').where({ endpoint: instance.endpoint }).update({ owner_project: project_id });
    const { fleet } = worker.ctx;
    await waitFor('the router to know the owner', () =>
      fleet.all(capability).some(({ owner_project }) => owner_project === project_id),
    );
  }

  it('receives nothing, and the decision gives the reason', async () => {
    await moveAway();
    const run = await aSecretRun();
    const end = await worker.execute(run, { step_id: 'a', remainingMs: 100 });
    expect(JSON.stringify(end)).toContain('may not receive the secrets of the step');
    expect(instance.execs).toEqual([]);
    const own = await world.register({ name: capability, deterministic: true });
    const later = await worker.execute(await aSecretRun(), 'a');
    expect(later).toMatchObject({
      kind: 'succeeded',
      attempt: {
        endpoint: own.endpoint,
        decision: {
          candidates: expect.arrayContaining([
            expect.objectContaining({ endpoint: instance.endpoint, verdict: 'secret_not_allowed' }),
          ]),
        },
      },
    });
    expect(instance.execs).toEqual([]);
  });

  it('receives it if its host is listed', async () => {
    await moveAway();
    await set({ hosts: [new URL(instance.endpoint).host] });
    expect(await worker.execute(await aSecretRun(), 'a')).toMatchObject({ kind: 'succeeded' });
    expect(instance.execs.map(({ input }) => input)).toEqual([sent]);
  });
});

describe('between two executions', () => {
  it('a deleted secret fails the step with its name', async () => {
    await deleteSecret(worker.ctx, caller(), 'token');
    expect(await worker.execute(await aSecretRun(), 'a')).toMatchObject({
      kind: 'failed',
      error: { code: 'secret_unknown', message: expect.stringContaining('token') },
    });
    expect(instance.execs).toEqual([]);
  });

  it('a secret that is for other capabilities now fails the step', async () => {
    await set({ capabilities: ['mail'] });
    expect(await worker.execute(await aSecretRun(), 'a')).toMatchObject({
      kind: 'failed',
      error: { code: 'secret_not_allowed', message: expect.stringContaining('mail') },
    });
    expect(instance.execs).toEqual([]);
  });

  it('values that have grown beyond the bound of a search fail the step, and one alone never does', async () => {
    const input = { a: '{{ secrets.token }}', b: '{{ secrets.other }}' };
    const other = { name: 'other', capabilities: ['publish*'], hosts: [] };
    await set({ value: '"'.repeat(65_536) });
    await setSecret(worker.ctx, caller(), { ...other, value: 'another-value' });
    expect(await worker.execute(await aSecretRun({ input }), 'a')).toMatchObject({
      kind: 'failed',
      error: { code: 'secrets_too_large', message: expect.stringContaining('2 secrets') },
    });
    expect(instance.execs).toEqual([]);
    expect(await worker.execute(await aSecretRun(), 'a')).toMatchObject({ kind: 'succeeded', output: shown });
  });

  it('a new value is sent from the next call on', async () => {
    await worker.execute(await aSecretRun(), 'a');
    await set({ value: 'another-value' });
    await worker.execute(await aSecretRun(), 'a');
    expect(instance.execs.map(({ input }) => input.auth)).toEqual([
      `Bearer ${value}`,
      'Bearer another-value',
    ]);
  });

  it('a process without the key that encrypts it sends nothing and can try later', async () => {
    const { run_id } = await aSecretRun();
    const ctx = { ...worker.ctx, secretCipher: null };
    const execution = executeStep(ctx, { run_id, step_id: 'a', revision: 0 }, control());
    await expect(execution).rejects.toMatchObject({ code: 'unavailable' });
    expect(instance.execs).toEqual([]);
    expect(await worker.execute({ run_id }, 'a')).toMatchObject({ kind: 'succeeded' });
  });
});

describe('a cached result', () => {
  const cache = { ttl: '1h' };

  it('answers an equal call with the same version of the secret, and no other', async () => {
    await worker.execute(await aSecretRun({ cache }), 'a');
    const again = await worker.execute(await aSecretRun({ cache }), 'a');
    expect(again).toMatchObject({ kind: 'succeeded', output: shown, attempt: { cost_usd: 0 } });
    expect(instance.execs).toHaveLength(1);
    await set(); // the same value is a new version too
    await worker.execute(await aSecretRun({ cache }), 'a');
    expect(instance.execs).toHaveLength(2);
    await deleteSecret(worker.ctx, caller(), 'token');
    await set();
    await worker.execute(await aSecretRun({ cache }), 'a');
    expect(instance.execs).toHaveLength(3);
    expect(JSON.stringify(await db('cached_result'))).not.toContain(value);
  });

  it('does not answer a call whose equal text is no secret', async () => {
    await worker.execute(await aSecretRun({ cache }), 'a');
    const forged = { auth: 'Bearer {{ job.forged }}', forged: '{{ job.forged }}' };
    await worker.execute(await aSecretRun({ cache, input: forged }), 'a');
    expect(instance.execs.map(({ input }) => input)).toEqual([sent, shown]);
  });
});

describe('a corrected input', () => {
  async function execute(corrected: JsonObject) {
    const run = await aSecretRun({ escalate: {} });
    const { run_id, project_id } = run;
    await db('escalation').insert({
      escalation_id: `esc_${run_id}`,
      project_id,
      job_type: capability,
      prompt: 'p',
      ladder: {},
      escalation_level: 0,
      model_spec: {},
      run_id,
      step_id: 'a',
      item: 0,
    });
    await db('step_revision').insert({
      run_id,
      step_id: 'a',
      item: 0,
      revision: 1,
      input: JSON.stringify(corrected),
      source: 'review:1',
      escalation_id: `esc_${run_id}`,
      transition: 1,
      choice: 0,
    });
    return executeRevision(worker.ctx, { run_id, step_id: 'a', item: 0, revision: 1 }, control());
  }

  it('is sent with the value where it keeps the place of the secret', async () => {
    expect(await execute({ ...shown, forged: 'x', more: 1 })).toMatchObject({ kind: 'succeeded' });
    expect(instance.execs.map(({ input }) => input)).toEqual([
      { auth: `Bearer ${value}`, forged: 'x', more: 1 },
    ]);
  });

  it.each<[string, JsonObject]>([
    ['moves', { body: shown.auth }],
    ['changes', { ...shown, auth: 'Basic [secret token]' }],
  ])('is not sent where it %s the place', async (_, corrected) => {
    expect(await execute(corrected)).toMatchObject({
      kind: 'failed',
      error: { code: 'change_refused', message: expect.stringContaining('/auth') },
    });
    expect(instance.execs).toEqual([]);
  });
});
