/** Server and worker as an operator starts them: by their commands, with settings from a file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { findMissingSearchAttributes } from '../../src/clients/temporal/search-attributes.ts';
import { readFunctions } from '../../src/db/sql/functions.ts';
import type { Check } from '../../src/dev/doctor/check.ts';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import { serve } from '../cli/support/http-server.ts';
import { createClient } from '../support/capstan.ts';
import { migrationNames, useDatabase } from '../support/database.ts';
import { aRun } from '../support/factories.ts';
import { echo, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

const { url: databaseUrl } = useDatabase();
const empty = useDatabase();
const restored = useDatabase();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan own '));
  await empty.db.raw('drop schema public cascade; create schema public');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** They read their settings alike. */
const programs = isLong ? ['server', 'worker', 'migrate'] : ['server'];

const searchAttributeNames = ['PipelineName', 'PipelineVersion', 'ProjectId', 'RunPhase', 'AwaitingHuman'];

interface Started {
  readonly child: ChildProcess;
  readonly said: { stdout: string; stderr: string };
}

/** @param settings beside what any process of this machine has; nothing of the test's own */
function start(words: readonly string[], settings: NodeJS.ProcessEnv): Started {
  const program = join(inject('packageFolder'), 'bin/capstan.mjs');
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...settings };
  const child = spawn(process.execPath, [program, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text) => {
      said[name] += text;
    });
  }
  return { child, said };
}

async function ended({ child, said }: Started) {
  const [code] = await once(child, 'close');
  return { code, ...said };
}

function capstan(words: readonly string[], settings: NodeJS.ProcessEnv = {}) {
  return ended(start(words, settings));
}

async function ready({ child, said }: Started, message: string): Promise<Record<string, unknown>> {
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes(message)) return JSON.parse(line);
  }
  throw new Error(`it ended before "${message}": ${said.stderr}`);
}

async function writeSettings(name: string, settings: Readonly<Record<string, string>>): Promise<string> {
  const file = join(folder, name);
  await writeFile(
    file,
    Object.entries(settings)
      .map(([key, value]) => `${key}="${value}"\n`)
      .join(''),
  );
  return file;
}

/** The server notices a change of a namespace after a while. */
function waitForAttributes(connection: Connection, namespace: string, missing: number): Promise<unknown> {
  const isHeard = async (): Promise<boolean> => {
    const found = await findMissingSearchAttributes(connection, namespace).catch(() => null);
    return found?.length === missing;
  };
  return waitFor(`${missing} attributes to be missing`, isHeard);
}

/** Of its own, so that nothing is registered in it. */
async function registerNamespace(connection: Connection, namespace: string): Promise<void> {
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs(86_400_000),
  });
  await waitForAttributes(connection, namespace, searchAttributeNames.length);
}

test('server and worker carry out a run with settings from a file, and end in order', async () => {
  const keyFile = join(folder, 'key');
  const access = await prepareDatabase(databaseUrl, { apiKeyFile: keyFile });
  const envFile = await writeSettings('capstan.env', {
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    MEDIA_URL: `file://${encodeURI(folder)}/media`,
    TASK_QUEUE: 'own-processes',
    PORT: '1', // the environment wins
  });
  const server = start(['server', '--env-file', envFile], { PORT: '0' });
  const worker = start(['worker', '--env-file', envFile], { PORT: '0' });
  const { url } = await ready(server, 'server is ready');
  const client = createClient(() => String(url), access.api_key);
  const instance = await startInstance(client, { name: 'echo' });
  instance.handle = echo;
  const run = await client.submit([{ id: 'say', capability: 'echo', input: { text: 'hello' } }]);
  expect(await client.ended(run.run_id)).toMatchObject({ state: 'succeeded' });
  await instance.stop();
  const ends = [server, worker].map(ended);
  for (const { child } of [server, worker]) child.kill('SIGTERM');
  expect((await Promise.all(ends)).map(({ code, stderr }) => ({ code, stderr }))).toEqual([
    { code: 0, stderr: '' },
    { code: 0, stderr: '' },
  ]);
});

test.each(programs)('capstan %s names all wrong settings, once, and exits 1', async (name) => {
  const { code, stderr } = await capstan([name], { PORT: '70000', HEARTBEAT_TIMEOUT_MS: 'soon' });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error usage: configuration: ✖ /);
  for (const variable of ['DATABASE_URL', 'PORT', 'HEARTBEAT_TIMEOUT_MS']) {
    expect(stderr.match(new RegExp(`→ at ${variable}\\n`, 'g'))).toHaveLength(1);
  }
  expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
});

test('a misspelt setting in the file is a mistake, a foreign name is not', async () => {
  const envFile = await writeSettings('typo.env', {
    DATABASE_ULR: 'postgres://x/y',
    AWS_REGION: 'eu-north-1',
  });
  expect(await capstan(['server', '--env-file', envFile])).toEqual({
    code: 1,
    stdout: '',
    stderr: `error usage: --env-file ${envFile}: DATABASE_ULR is no setting, did you mean "DATABASE_URL"?\n`,
  });
});

test.each(programs)('capstan %s exits 2 where no Postgres answers, without its password', async (name) => {
  const { code, stderr } = await capstan([name], {
    DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/capstan',
    TEMPORAL_ADDRESS: inject('temporalAddress'),
  });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'no Postgres at 127.0.0.1:1/capstan (DATABASE_URL): connect ECONNREFUSED 127.0.0.1:1\n',
  });
});

test.runIf(isLong).each(programs.slice(0, 2))(
  'capstan %s reports a media store that cannot exist in one line',
  async (name) => {
    const { code, stderr } = await capstan([name], {
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      MEDIA_URL: 'ftp://media',
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'error usage: MEDIA_URL is "ftp://media"; allowed are file://DIR and s3://BUCKET/PREFIX?region=…\n',
    });
  },
);

test.runIf(isLong)('capstan worker exits 2 where Temporal has no such namespace', async () => {
  const settings = { DATABASE_URL: databaseUrl, TEMPORAL_ADDRESS: inject('temporalAddress') };
  const { code, stderr } = await capstan(['worker'], { ...settings, TEMPORAL_NAMESPACE: 'nowhere' });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `no use of Temporal at ${inject('temporalAddress')}, namespace nowhere (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE): Namespace nowhere was not found or otherwise could not be described\n`,
  });
});

test.runIf(isLong)('capstan worker exits 2 where no Temporal answers', async () => {
  const settings = { DATABASE_URL: databaseUrl, TEMPORAL_ADDRESS: '127.0.0.1:1' };
  const { code, stderr } = await capstan(['worker'], settings);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^no use of Temporal at 127\.0\.0\.1:1, namespace default \(.*\): /);
});

/** The variables of a file lead to these places, and those that a program falls back to without it lead nowhere. */
describe('a program that works on a database goes where its file points, not to its default', () => {
  test('recover: to the Temporal and the namespace, which it names, and starts the runs there', async () => {
    const namespace = `where-${randomBytes(4).toString('hex')}`;
    const address = inject('temporalAddress');
    const connection = await Connection.connect({ address });
    await registerNamespace(connection, namespace);
    const runs = [await aRun(restored.db), await aRun(restored.db)];
    await restored.db('run').update({ start_delivered_at: restored.db.fn.now() });
    const envFile = await writeSettings('recover.env', {
      DATABASE_URL: restored.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    const { code, stdout, stderr } = await capstan(['recover', '--env-file', envFile]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')[0]).toBe(`Temporal at ${address}, namespace ${namespace}`);
    expect(stdout).toContain('started again: 2 runs, 0 ladders, 0 schedules; 0 runs continue in Temporal');
    const isListed = async () => {
      const { executions } = await connection.workflowService.listWorkflowExecutions({ namespace });
      return executions.length === runs.length;
    };
    await waitFor('the runs in the namespace', isListed);
    await connection.close();
  });

  test.each([
    ['no Temporal answers', '127.0.0.1:1', 'default', /: Failed to connect before the deadline\n$/],
    ['Temporal has no such namespace', null, 'nowhere', /: Namespace nowhere is not found\.\n$/],
  ])('recover: where %s it names the place of the file in one line', async (_, nowhere, namespace, words) => {
    const address = nowhere ?? inject('temporalAddress');
    const envFile = await writeSettings('nowhere.env', {
      DATABASE_URL: restored.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    });
    const { code, stdout, stderr } = await capstan(['recover', '--env-file', envFile]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`no use of Temporal at ${address}, namespace ${namespace} (`);
    expect(stderr).toMatch(words);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  test('purge: to the bucket, with the keys', async () => {
    const asked: string[] = [];
    const bucket = await serve((request, response) => {
      asked.push(request.headers.authorization ?? '');
      response.writeHead(404).end();
    });
    const { run_id, job_id, project_id } = await aRun(restored.db);
    const toOld = (id: string): string => id.replace(/_.{13}/, '_01000000-0000');
    const [oldRun, oldJob] = [toOld(run_id), toOld(job_id)];
    await restored.db('event').delete();
    await restored.db.raw(
      `insert into job select (jsonb_populate_record(j, jsonb_build_object('job_id', ?::text, 'created_at', now() - interval '50 days'))).* from job j where job_id = ?`,
      [oldJob, job_id],
    );
    const finished_at = restored.db.raw(`now() - interval '40 days'`);
    const ended = { run_id: oldRun, job_id: oldJob, state: 'succeeded', finished_at };
    await restored.db('run').where({ run_id }).update(ended);
    const facts = {
      size: 1,
      sha256: Buffer.alloc(32),
      etag: 'e',
      content_type: 'text/plain',
      state: 'stored',
    };
    const created_at = restored.db.raw(`now() - interval '50 days'`);
    await restored
      .db('media_object')
      .insert({ project_id, job_id: oldJob, file: 'a.txt', created_at, ...facts });
    const envFile = await writeSettings('purge.env', {
      DATABASE_URL: restored.url,
      MEDIA_URL: `s3://media/x?region=eu-north-1&endpoint=${encodeURIComponent(bucket)}&path_style=true`,
      AWS_ACCESS_KEY_ID: 'AKIAOFTHEFILE',
      AWS_SECRET_ACCESS_KEY: 'secret',
      RUN_RETENTION_DAYS: '7',
    });
    await capstan(['purge', '--env-file', envFile]);
    expect(asked[0]).toContain('Credential=AKIAOFTHEFILE/');
  });
});

test('capstan migrate announces its work, does it, and writes a key where it is asked to', async () => {
  const settings = { DATABASE_URL: empty.url };
  const names = migrationNames();
  const functions = readFunctions(names.length).texts.map(({ name }) => name);
  const check = await capstan(['migrate', '--check'], settings);
  expect(check).toEqual({
    code: 0,
    stdout: `${names.map((name) => `would apply ${name}\n`).join('')}would create functions of ${functions.join(', ')}\nthe database has no schema yet\n`,
    stderr: '',
  });
  expect(await empty.db.schema.hasTable('schema_migration')).toBe(false);
  const keyFile = join(folder, 'first-key');
  const done = await capstan(['migrate', '--api-key-file', keyFile], settings);
  expect(done.stdout).toBe(
    `${names.map((name) => `applied ${name}\n`).join('')}created functions of ${functions.join(', ')}\nthe schema is at ${names.at(-1)}\nan admin key is in ${keyFile}\n`,
  );
  expect(await readFile(keyFile, 'utf8')).toMatch(/^cap_/);
  expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
  const again = await capstan(['migrate', '--check', '--json'], settings);
  expect(JSON.parse(again.stdout)).toEqual({ applied: names, pending: [], newer: [], functions: [] });
});

test.runIf(isLong)(
  'capstan doctor names search attributes that Temporal lacks, and registers them with --fix',
  async () => {
    const namespace = `doctor-${randomBytes(4).toString('hex')}`;
    const connection = await Connection.connect({ address: inject('temporalAddress') });
    await registerNamespace(connection, namespace);
    const settings = { TEMPORAL_ADDRESS: inject('temporalAddress'), TEMPORAL_NAMESPACE: namespace };
    const attributes = async (...words: readonly string[]) => {
      const { stdout } = await capstan(['doctor', '--json', '--data', folder, ...words], settings);
      return (JSON.parse(stdout) as Check[]).find(({ name }) => name === 'search attributes');
    };
    const known = searchAttributeNames.join(', ');
    expect(await attributes()).toMatchObject({
      status: 'warning',
      found: `not registered in ${namespace}: ${known}`,
      remedy: 'capstan doctor --fix registers them; runs work without them',
    });
    expect(await attributes('--fix')).toMatchObject({
      status: 'ok',
      found: `registered now in namespace ${namespace}: ${known}`,
    });
    await waitForAttributes(connection, namespace, 0);
    expect((await attributes())?.found).toMatch(/^all registered/);
    await connection.close();
  },
);

test.runIf(isLong)(
  'capstan doctor reads the settings of a server, and names those that lead nowhere',
  async () => {
    const doctor = async (settings: Readonly<Record<string, string>>) => {
      const file = await writeSettings('doctor.env', settings);
      const words = ['doctor', '--json', '--data', folder, '--env-file', file];
      const { code, stdout } = await capstan(words);
      const checks = JSON.parse(stdout) as Check[];
      const of = (name: string) => checks.find((check) => check.name === name);
      return { code, Postgres: of('Postgres'), Temporal: of('Temporal') };
    };
    const right = { DATABASE_URL: databaseUrl, TEMPORAL_ADDRESS: inject('temporalAddress') };
    expect(await doctor(right)).toMatchObject({
      code: 0,
      Postgres: { status: 'ok', found: expect.stringContaining('at DATABASE_URL') },
      Temporal: { status: 'ok', found: `yours at ${right.TEMPORAL_ADDRESS}, namespace default` },
    });
    expect(await doctor({ ...right, TEMPORAL_NAMESPACE: 'nowhere' })).toMatchObject({
      code: 1,
      Temporal: { status: 'missing', found: expect.stringContaining('namespace nowhere') },
    });
    expect(await doctor({ ...right, TEMPORAL_ADDRESS: '127.0.0.1:9' })).toMatchObject({
      code: 1,
      Postgres: { status: 'ok' },
      Temporal: { status: 'missing', found: expect.stringContaining('127.0.0.1:9') },
    });
  },
);
