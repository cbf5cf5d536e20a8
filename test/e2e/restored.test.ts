/**
 * Everything stops and is lost but a base backup of Postgres, which was made while runs were open; Temporal is empty.
 * After `capstan recover` every run of the backup continues.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Review } from '@capstan/core/contracts/review';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import type { WholeRecovery } from '../../src/processes/upkeep/recover.ts';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import { takeBaseBackup } from '../support/base-backup.ts';
import { type Capstan, type CapstanClient, createClient, startCapstan } from '../support/capstan.ts';
import { findCompiled } from '../support/compiled.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { decide } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';

const run = promisify(execFile);
let folder: string;
let port: number;
let supervisor: Supervisor;
let databaseUrl: string;
let capstan: Capstan | undefined;
let client: CapstanClient;
const instances: Instance[] = [];
const held: (() => void)[] = [];
let isFree = false;

async function startDatabase() {
  supervisor = createSupervisor({
    report: () => undefined,
    temporaryFolder: null,
  });
  const options = { dataDir: folder, port, ephemeral: true, cacheDir: join(folder, 'cache') };
  return startPostgres(
    supervisor,
    options,
    createPartReport(() => undefined, 'Postgres'),
  );
}

/** As new: nothing of the one before is in it. */
async function aNamespace(): Promise<string> {
  const namespace = `restored-${randomBytes(4).toString('hex')}`;
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    });
    const isKnown = () =>
      connection.workflowService.listWorkflowExecutions({ namespace }).then(
        () => true,
        () => undefined,
      );
    await waitFor('the namespace', isKnown);
  } finally {
    await connection.close();
  }
  return namespace;
}

const settings = { HEARTBEAT_TIMEOUT_MS: '2000', LEASE_MS: '3000', TASK_QUEUE: 'restored' };

function environmentOf(namespace: string): NodeJS.ProcessEnv {
  return { ...settings, DATABASE_URL: databaseUrl, TEMPORAL_NAMESPACE: namespace };
}

async function recover(namespace: string): Promise<{ report: WholeRecovery; toldBefore: string }> {
  const program = findCompiled(inject('packageFolder'), 'src/cli/main.ts');
  const env = { ...process.env, ...environmentOf(namespace), TEMPORAL_ADDRESS: inject('temporalAddress') };
  const { stdout, stderr } = await run(process.execPath, [program, 'recover', '--json'], { env });
  return { report: JSON.parse(stdout), toldBefore: stderr };
}

beforeAll(async () => {
  folder = createTemporaryFolder('capstan-restored-');
  await chmod(folder, 0o755);
  port = await choosePort([]);
  databaseUrl = await ensureDatabase(await startDatabase(), 'capstan');
  const { api_key } = await prepareDatabase(databaseUrl, { apiKeyFile: join(folder, 'key') });
  client = createClient(() => capstan?.url ?? '', api_key);
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await capstan?.stop();
  await supervisor?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function startFleet(): Promise<void> {
  const [echo, holder] = await Promise.all([
    startInstance(client, { name: 'echo', cost_model: { type: 'per_call', rate_usd: 0.5 } }),
    startInstance(client, { name: 'held', cost_model: { type: 'per_call', rate_usd: 0.25 } }),
  ]);
  instances.push(echo, holder);
  holder.handle = (exec, response) => {
    const end = () => answer(response, 200, { ok: true, output: exec.input });
    if (isFree) end();
    else held.push(end);
  };
}

function echoed(id: string, ...depends_on: string[]) {
  return { id, capability: 'echo', input: { id }, depends_on };
}

async function submitAll() {
  const submit = async (steps: readonly object[]) => (await client.submit(steps)).run_id;
  return {
    time: await submit([echoed('a'), { id: 'pause', wait: '20s', depends_on: ['a'] }, echoed('b', 'pause')]),
    person: await submit([
      echoed('a'),
      { id: 'ask', review: { title: '?' }, depends_on: ['a'] },
      echoed('b', 'ask'),
    ]),
    call: await submit([
      echoed('a'),
      { id: 'h', capability: 'held', input: {}, depends_on: ['a'] },
      echoed('b', 'h'),
    ]),
    ended: await submit([echoed('a')]),
  };
}

function openReview(runId: string): Promise<Review> {
  return waitFor(`a question of ${runId}`, async () => {
    const { body } = await client.request<{ items: Review[] }>(
      'GET',
      `/v1/reviews?run_id=${runId}&state=open`,
    );
    return body.items[0];
  });
}

/** How often each key was called. */
function callsByKey(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { headers } of instances.flatMap(({ execs }) => execs)) {
    const key = String(headers['idempotency-key']);
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

test('every run of the backup continues; its report named the calls that were made twice', {}, async () => {
  capstan = await startCapstan(environmentOf(await aNamespace()));
  await startFleet();
  const runs = await submitAll();
  const nightly = { pipeline: 'nightly', version: '1', steps: [echoed('a')] };
  await client.request('POST', '/v1/pipelines', nightly);
  const calendar = { name: 'yearly', pipeline: 'nightly', cron: '0 0 29 2 *', job: {} };
  const { body: schedule } = await client.request<Schedule>('POST', '/v1/schedules', calendar);
  expect(schedule.schedule_id).toBeDefined();
  await client.ended(runs.ended);
  await openReview(runs.person);
  await waitFor('the call', () => held.length === 1);
  const db = connectDatabase(databaseUrl, 2);
  await waitFor('the wait', () => db('step').where({ run_id: runs.time, awaiting: 'time' }).first());
  const { rows } = await db.raw('show data_directory');
  const data: string = rows[0].data_directory;
  await takeBaseBackup(databaseUrl, data, `${data}.backup`);

  held.pop()?.(); // of which the backup knows nothing
  await client.ended(runs.call);
  await db.destroy();
  await Promise.all([capstan.killServer('SIGKILL'), capstan.killWorker('SIGKILL')]);
  await supervisor.stop();
  await rm(data, { recursive: true });
  await rename(`${data}.backup`, data);
  isFree = true;

  await startDatabase();
  const empty = await aNamespace();
  const { report, toldBefore } = await recover(empty);
  expect(report).toMatchObject({
    other_cluster: null,
    open_runs: 3,
    restarted_runs: 3,
    restored_schedules: 1,
  });
  expect(report.search_attributes).toContain('PipelineName');
  expect(report.interrupted_calls).toMatchObject([{ run_id: runs.call, step_id: 'h', capability: 'held' }]);
  expect(toldBefore).toContain(`${runs.call} h → held at http`);
  const { report: again } = await recover(empty);
  expect(again).toMatchObject({ restarted_runs: 0, running_runs: 3, restored_schedules: 0 });

  const before = capstan;
  capstan = await startCapstan(environmentOf(empty));
  await before.stop();
  await decide(client, await openReview(runs.person), { action: 'output', output: {} });
  for (const id of Object.values(runs))
    expect(await client.ended(id, 60_000)).toMatchObject({ state: 'succeeded' });
  // The call that was running, as the report named it, and the one that followed it after the backup.
  expect(Object.values(callsByKey()).filter((count) => count !== 1)).toEqual([2, 2]);
  expect(instances[1]?.execs).toHaveLength(2);
  const shown = await client.request<Schedule>('GET', `/v1/schedules/${schedule.schedule_id}`);
  expect(shown.body.next_at).not.toEqual([]);
  const restored = connectDatabase(databaseUrl, 2);
  expect(await findDrift(restored)).toEqual([]);
  await restored.destroy();
});
