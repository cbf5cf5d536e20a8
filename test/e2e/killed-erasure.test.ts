/**
 * One of two projects is erased while both are at work, by the command; the server dies in the middle of it. Its
 * remains are looked for in every table of the database, in Temporal and in the media store.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { findCompiled } from '../support/compiled.ts';
import { answer, type Exec, type Instance, startInstance } from '../support/fleet.ts';
import { aProjectInUse, openReview, type ProjectInUse } from '../support/project-in-use.ts';
import { decide } from '../support/reviews.ts';
import { listTables, tablesNaming } from '../support/tables.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let db: Db;
let temporal: Client;
let folder: string;
let gone: ProjectInUse;
let kept: ProjectInUse;
const instances: Instance[] = [];
const held: { exec: Exec; release: () => void }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-erased-'));
  capstan = await startCapstan({
    MEDIA_URL: `file://${folder}`,
    LEASE_MS: '3000',
    HEARTBEAT_TIMEOUT_MS: '2000',
  });
  db = connectDatabase(capstan.databaseUrl, 3);
  temporal = new Client({ connection: await Connection.connect({ address: inject('temporalAddress') }) });
  const shared = { cost_model: { type: 'per_call', rate_usd: 0.25 }, shared_with: 'all' } as const;
  instances.push(await startInstance(capstan, { name: 'echo', ...shared, deterministic: true }));
  const holder = await startInstance(capstan, { name: 'hold', ...shared });
  instances.push(holder);
  holder.handle = (exec, response) =>
    void held.push({ exec, release: () => answer(response, 200, { ok: true, output: exec.input }) });
  gone = await aProjectInUse(capstan, 'gone-films');
  kept = await aProjectInUse(capstan, 'kept-songs');
  await waitFor('both calls', () => held.length === 2);
});
afterAll(async () => {
  await Promise.all([...instances, gone?.instance, kept?.instance].map((instance) => instance?.stop()));
  await capstan?.stop();
  await temporal?.connection.close();
  await db?.destroy();
  await rm(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command, with the first key. */
function command(...words: string[]): Promise<Ended> {
  const program = findCompiled(inject('packageFolder'), 'src/cli/main.ts');
  const all = [program, 'projects', ...words, '--url', capstan.url, '--key', capstan.key];
  return new Promise((resolve) => {
    execFile(process.execPath, all, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

async function statesOf(project_id: string): Promise<readonly string[]> {
  return db('run').where({ project_id, finished_at: null }).pluck('state');
}

function openCalls({ project_id }: ProjectInUse) {
  return db('attempt').where({ project_id }).whereIn('state', ['reserved', 'dispatched']);
}

async function money() {
  const { rows } = await db.raw(`select
    (select json_agg(l order by kind) from (select kind, sum(amount_nano), count(*) from ledger_entry group by 1) l)::text as ledger,
    (select json_agg(json_build_array(window_start, spent_nano) order by window_start) from budget where scope = 'global')::text as spent`);
  return rows[0];
}

/** Of the other project, the rows that do not change any more. */
async function rowsOf({ done, project_id }: ProjectInUse): Promise<string> {
  const { rows } = await db.raw(
    `select (select json_agg(e order by id) from event e where run_id = :run)::text as events,
       (select json_agg(s) from step s where run_id = :run)::text as steps,
       (select json_agg(a) from attempt a where run_id = :run)::text as attempts,
       (select json_agg(l order by entry_id) from ledger_entry l join attempt a using (attempt_id)
        where a.project_id = :project and a.finished_at is not null)::text as ledger,
       (select json_agg(r) from cached_result r where project_id = :project)::text as kept`,
    { run: done.run_id, project: project_id },
  );
  return JSON.stringify(rows[0]);
}

/** Ids of workflows that Temporal lists of it. */
async function listedOf({ mark, project_id }: ProjectInUse): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const query of [`WorkflowId STARTS_WITH '${mark}/'`, `ProjectId = '${project_id}'`])
    for await (const { workflowId } of temporal.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

function workflowsOf({ mark, called, asked, done, scheduled }: ProjectInUse): readonly string[] {
  return [called, asked, done, scheduled].map(({ run_id }) => `${mark}/${run_id}`);
}

async function isKnown(workflowId: string): Promise<boolean> {
  return temporal.workflow
    .getHandle(workflowId)
    .describe()
    .then(
      () => true,
      () => false,
    );
}

async function expectNothingLeft(project: ProjectInUse): Promise<void> {
  const { project_id, key_id, mark, called, asked, done, scheduled, schedule, job_id } = project;
  const runs = [called, asked, done, scheduled].map(({ run_id }) => run_id);
  for (const text of [project_id, key_id, mark, job_id, schedule.schedule_id, ...runs])
    expect(await tablesNaming(db, text), text).toEqual([]);
  expect(await listedOf(project)).toEqual([]);
  for (const id of workflowsOf(project)) expect(await isKnown(id), id).toBe(false);
  await expect(temporal.schedule.getHandle(`${mark}/${schedule.schedule_id}`).describe()).rejects.toThrow();
  expect(existsSync(join(folder, job_id))).toBe(false);
}

test('a whole project is erased, over the death of the server, and nothing of the other one', {
  timeout: 400_000,
}, async () => {
  const { project_id } = gone;
  expect(await listTables(db)).toEqual(expect.arrayContaining(['run', 'erasure', 'ledger_entry']));
  const before = await tablesNaming(db, project_id);
  expect(before).toEqual(expect.arrayContaining(['run', 'attempt', 'ledger_entry', 'audit', 'instance']));
  expect(existsSync(join(folder, gone.job_id))).toBe(true);
  const others = await rowsOf(kept);

  const asked = await command('erase', project_id);
  expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining('add --yes') });
  expect(asked.stdout).toMatch(/ 2 {2}of them open\n[\s\S]* 1 {2}schedules\n/);
  expect(await statesOf(project_id)).toEqual(['running', 'running']);

  const erased = command('erase', project_id, '--yes');
  await waitFor('its runs to be ended', async () => (await statesOf(project_id)).length === 0);
  expect(await db('run').where({ project_id, cancel_mode: 'terminate' })).toHaveLength(2);
  const late = await gone.request('POST', '/v1/runs', { pipeline: gone.mark, job: {} });
  expect([401, 409]).toContain(late.status);
  await waitFor('its key to be refused', async () => (await gone.request('GET', '/v1/runs')).status === 401);
  await waitFor('its calls to end', async () => (await openCalls(gone)).length === 0);
  const sums = await money();
  const own = await db('ledger_entry').where({ project_id }).count();

  const middle = await db.transaction(); // behind which it does not get
  await middle.raw('set local idle_in_transaction_session_timeout = 0');
  await middle('job').where({ job_id: gone.job_id }).forUpdate().first();
  const isBegun = async () => (await db('erasure').first('deleted')).deleted.run !== undefined;
  await waitFor('some of its runs to be gone', isBegun, 120_000);
  await capstan.killServer('SIGKILL');
  await middle.rollback();
  expect(await erased).toMatchObject({ code: 2 });
  await capstan.startServer();
  const again = await command('erase', project_id, '--yes');
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(`${project_id} is erased`) });

  await expectNothingLeft(gone);
  expect(await money()).toEqual(sums);
  const [{ pseudonym }] = await db('erasure').select('pseudonym');
  expect(await db('ledger_entry').where({ project_id: pseudonym }).count()).toEqual(own);
  expect(await rowsOf(kept)).toBe(others);

  for (const { release } of held) release(); // that of the erased one comes too late
  await decide(kept, await openReview(kept, kept.asked.run_id), { action: 'output', output: {} });
  for (const { run_id } of [kept.called, kept.asked])
    expect(await kept.ended(run_id)).toMatchObject({ state: 'succeeded' });
  for (const id of workflowsOf(kept)) expect(await isKnown(id), id).toBe(true);
  const file = await kept.request('GET', `/v1/media/${kept.job_id}/in.txt`);
  expect([file.status, file.body]).toEqual([200, kept.mark]);
  const { body } = await kept.request<Schedule>('GET', `/v1/schedules/${kept.schedule.schedule_id}`);
  expect(body.next_at).not.toEqual([]);
  expect(await findDrift(db)).toEqual([]);

  expect(await command('erase', project_id, '--yes')).toEqual({ ...again, stderr: '' });
  expect((await capstan.request('GET', `/v1/runs/${gone.done.run_id}`)).status).toBe(404);
  await expectNothingLeft(gone); // nor has anything come again
});
