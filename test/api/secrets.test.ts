/** `/v1/secrets`: set, list, delete; a value is stored sealed and never shown. */
import { randomBytes } from 'node:crypto';
import type { AuditEntry } from '@capstan/core/contracts/access';
import { type Secret, secretLimits } from '@capstan/core/contracts/secret';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createSecretCipher } from '../../src/clients/secret-cipher.ts';
import { resealSecrets } from '../../src/use-cases/secrets/secrets.ts';
import { type CallOptions, readJson, startTestApi, type TestApi } from '../support/api.ts';

const older = `k1:${randomBytes(32).toString('base64')}`;
const newer = `k2:${randomBytes(32).toString('base64')}`;
const value = 'a value of "secrets" with ünicode';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ PAYLOAD_KEYS: older });
});
afterAll(() => api?.close());
beforeEach(() => api.db('secret').del());

function put(name: string, body: unknown, options: CallOptions = {}) {
  return readJson<Secret & { code: string; detail: string }>(
    api.call(`/v1/secrets/${name}`, { method: 'PUT', body, ...options }),
  );
}

async function list() {
  return (await readJson<{ items: Secret[] }>(api.call('/v1/secrets')))[1].items;
}

describe('a secret', () => {
  test('is set, listed without its value, given another value, and deleted', async () => {
    const [status, set] = await put('web-token', { value, capabilities: ['publish.*'], hosts: ['a.test'] });
    expect([status, set]).toEqual([
      200,
      {
        name: 'web-token',
        version: 1,
        capabilities: ['publish.*'],
        hosts: ['a.test'],
        set_by: expect.stringMatching(/^key_/),
        set_at: expect.any(String),
        last_used_at: null,
      },
    ]);
    expect(await list()).toEqual([set]);
    const [, again] = await put('web-token', { value: `${value}2`, capabilities: ['mail'] });
    expect(again).toMatchObject({ version: 2, capabilities: ['mail'], hosts: [] });
    expect((await api.call('/v1/secrets/web-token', { method: 'DELETE' })).status).toBe(204);
    expect(await list()).toEqual([]);
    expect((await api.call('/v1/secrets/web-token', { method: 'DELETE' })).status).toBe(404);
  });

  test('is stored sealed, for its project and name alone', async () => {
    await put('one', { value, capabilities: ['*'] });
    const row = await api.db('secret').first();
    expect(JSON.stringify(row)).not.toContain('unicode');
    expect(row.sealed.toString('latin1')).not.toContain('secrets');
    const cipher = createSecretCipher(older);
    const owner = { project_id: api.projectId, name: 'one' };
    expect(cipher?.open(owner, row)).toBe(value);
    expect(() => cipher?.open({ ...owner, name: 'two' }, row)).toThrow('k1');
    expect(() => cipher?.open({ ...owner, project_id: 'prj_2' }, row)).toThrow('k1');
  });

  test('writes an audit entry when it is set and deleted, and no log line has its value', async () => {
    await put('audited', { value, capabilities: ['publish.web'] });
    await api.call('/v1/secrets/audited', { method: 'DELETE' });
    const entries = (await readJson<{ items: AuditEntry[] }>(api.call('/v1/audit?subject=audited')))[1].items;
    expect(entries.map(({ action, data }) => [action, data])).toEqual([
      ['secret.deleted', { version: 1 }],
      ['secret.set', { version: 1, capabilities: ['publish.web'], hosts: [] }],
    ]);
    expect(JSON.stringify(entries)).not.toContain('unicode');
    expect(api.log.join('')).not.toContain('unicode');
    expect(api.log.join('')).toContain('secret.set');
  });

  test('has at least 8 characters and at most 64 KiB', async () => {
    const capabilities = ['*'];
    const [short, problem] = await put('a', { value: '1234567', capabilities });
    expect([short, problem.code]).toEqual([422, 'request_invalid']);
    expect((await put('a', { value: 'x'.repeat(secretLimits.bytes), capabilities }))[0]).toBe(200);
    expect((await put('a', { value: 'ü'.repeat(secretLimits.bytes / 2 + 1), capabilities }))[0]).toBe(422);
    expect((await put('a', { value: '\\"\n'.repeat(20_000), capabilities }))[0]).toBe(200);
  });

  test.each(['A', '1a', 'a.b', 'constructor', 'x'.repeat(65)])('is not called %s', async (name) => {
    expect((await put(name, { value, capabilities: ['*'] }))[0]).toBe(422);
  });

  test.each([
    { capabilities: [] },
    { capabilities: ['a*b'] },
    {},
    { capabilities: ['*'], hosts: ['https://a.test'] },
    { capabilities: ['*'], hosts: ['*'] },
  ])('is refused for the receivers %j', async (receivers) => {
    expect((await put('a', { value, ...receivers }))[0]).toBe(422);
  });

  test('is one of at most 100 of a project', async () => {
    const row = { project_id: api.projectId, capabilities: ['*'], hosts: [], set_by: 'key', key_id: 'k1' };
    const sealed = Buffer.from('x');
    const names = Array.from({ length: secretLimits.perProject }, (_, at) => `s${at}`);
    await api.db('secret').insert(names.map((name) => ({ ...row, name, sealed })));
    expect((await put('one-more', { value, capabilities: ['*'] }))[1]).toMatchObject({
      code: 'limit_reached',
    });
    expect((await put('s7', { value, capabilities: ['*'] }))[0]).toBe(200);
  });
});

test('only a key with secrets:write, or admin, sees or sets secrets', async () => {
  const writer = await api.createKey({ scopes: ['secrets:write'] });
  const other = await api.createKey({ scopes: ['run:write', 'pipeline:write', 'capability:read'] });
  const withKey = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  const body = { value, capabilities: ['*'] };
  expect((await put('a', body, withKey(writer)))[0]).toBe(200);
  expect((await api.call('/v1/secrets', withKey(writer))).status).toBe(200);
  expect((await put('a', body, withKey(other)))[0]).toBe(403);
  expect((await api.call('/v1/secrets', withKey(other))).status).toBe(403);
});

test('a project does not see the secrets of another one', async () => {
  await put('a', { value, capabilities: ['*'] });
  const { apiKey } = await api.createProject('other');
  const headers = { authorization: `Bearer ${apiKey}` };
  expect((await readJson<{ items: Secret[] }>(api.call('/v1/secrets', { headers })))[1].items).toEqual([]);
  expect((await api.call('/v1/secrets/a', { method: 'DELETE', headers })).status).toBe(404);
});

test('without a key none is set, and the error names the setting', async () => {
  const bare = await startTestApi();
  try {
    expect(await readJson(bare.call('/v1/secrets'))).toMatchObject([200, { items: [], can_be_set: false }]);
    expect(await readJson(api.call('/v1/secrets'))).toMatchObject([200, { can_be_set: true }]);
    const body = { value, capabilities: ['*'] };
    const [status, problem] = await readJson(bare.call('/v1/secrets/a', { method: 'PUT', body }));
    expect([status, problem]).toMatchObject([
      409,
      { code: 'encryption_required', detail: expect.stringContaining('PAYLOAD_KEYS') },
    ]);
  } finally {
    await bare.close();
  }
});

test('after a rotation each is sealed by the new key', async () => {
  await put('a', { value, capabilities: ['*'] });
  await put('b', { value, capabilities: ['*'] });
  const secretCipher = createSecretCipher(`${newer},${older}`);
  const logger = pino({ level: 'silent' });
  expect(await resealSecrets({ db: api.db, secretCipher, logger })).toBe(2);
  expect(await resealSecrets({ db: api.db, secretCipher, logger })).toBe(0);
  const rows = await api.db('secret').orderBy('name');
  const alone = createSecretCipher(newer);
  expect(rows.map((row) => [row.key_id, row.version, alone?.open(row, row)])).toEqual([
    ['k2', 1, value],
    ['k2', 1, value],
  ]);
});

test('after a rotation with a key missing, the others are sealed by the new key, and the log names it', async () => {
  for (const name of ['a', 'b', 'c']) await put(name, { value, capabilities: ['*'] });
  await api.db('secret').where({ name: 'a' }).update({ key_id: 'k0' });
  await api.db('secret').where({ name: 'c' }).update({ key_id: 'k9' });
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
  const secretCipher = createSecretCipher(`${newer},${older}`);
  expect(await resealSecrets({ db: api.db, secretCipher, logger })).toBe(1);
  const rows = await api.db('secret').orderBy('name');
  expect(rows.map(({ name, key_id }) => [name, key_id])).toEqual([
    ['a', 'k0'],
    ['b', 'k2'],
    ['c', 'k9'],
  ]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { key_id: 'k0', secrets: 1 },
    { key_id: 'k9', secrets: 1 },
  ]);
});

describe('a pipeline', () => {
  const pipeline = (name: string) => ({
    pipeline: 'p',
    version: '1',
    steps: [{ id: 'a', capability: 'publish.web', input: { token: `{{ secrets.${name} }}` } }],
  });

  test('that names a secret which the project lacks is refused with the names it has', async () => {
    await put('web-token', { value, capabilities: ['publish.*'] });
    const [status, problem] = await readJson(api.call('/v1/pipelines', { body: pipeline('web-tokn') }));
    expect([status, problem.errors]).toMatchObject([
      422,
      [{ code: 'secret_unknown', message: expect.stringContaining('there are web-token') }],
    ]);
    expect((await api.call('/v1/pipelines', { body: pipeline('web-token') })).status).toBe(201);
  });

  test('whose step names more than answers are searched for is refused when it is stored and when it starts', async () => {
    const names = ['one', 'two', 'three'];
    for (const name of names)
      await put(name, { value: `${name}\n`.padEnd(25_000, 'x'), capabilities: ['*'] });
    const step = (id: string, ...used: string[]) => ({
      id,
      capability: 'publish.web',
      input: { tokens: used.map((name) => `{{ secrets.${name} }}`) },
    });
    const definition = {
      pipeline: 'large',
      version: '1',
      steps: [step('a', 'one', 'two'), step('b', 'three')],
    };
    expect((await api.call('/v1/pipelines', { body: definition })).status).toBe(201);
    const larger = { ...definition, version: '2', steps: [step('a', ...names)] };
    for (const [path, body] of [
      ['/v1/pipelines', larger],
      ['/v1/runs', { definition: larger, job: {} }],
    ] as const) {
      const [status, problem] = await readJson(api.call(path, { body }));
      expect([status, problem.errors?.[0]]).toMatchObject([
        422,
        {
          code: 'secrets_too_large',
          message: expect.stringMatching(/3 secrets of 7500\d bytes .* 65536$/),
        },
      ]);
    }
  });

  test('is checked again when a run starts: its secret may be deleted, or be for others', async () => {
    const definition = pipeline('later');
    await put('later', { value, capabilities: ['publish.web'] });
    const start = () => readJson(api.call('/v1/runs', { body: { definition, job: {} } }));
    const codes = async () => (await start())[1].errors?.map(({ code }) => code);
    await put('later', { value, capabilities: ['mail'] });
    expect(await codes()).toContain('secret_not_allowed');
    await api.call('/v1/secrets/later', { method: 'DELETE' });
    expect(await codes()).toContain('secret_unknown');
  });
});
