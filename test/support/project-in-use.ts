/** A project with rows of every kind, some of them open, made by its own key. */

import type { CacheEntry } from '@capstan/core/contracts/cache';
import type { Review } from '@capstan/core/contracts/review';
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { expect } from 'vitest';
import { type Capstan, type CapstanClient, createClient } from './capstan.ts';
import { type Instance, startInstance } from './fleet.ts';
import { waitFor } from './wait.ts';

export interface ProjectInUse extends CapstanClient {
  readonly project_id: string;
  readonly key_id: string;
  /** Occurs in all of its texts. */
  readonly mark: string;
  readonly job_id: string;
  /** Stays in the middle of a call, until the instance `hold` answers. */
  readonly called: Run;
  readonly asked: Run;
  readonly done: Run;
  readonly scheduled: RunSummary;
  readonly schedule: Schedule;
  readonly instance: Instance;
}

function echoed(id: string, mark: string, more: object = {}) {
  return { id, capability: 'echo', input: { mark }, ...more };
}

async function made<Body>(asked: ReturnType<CapstanClient['request']>): Promise<Body> {
  const { status, body } = await asked;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
  return body as Body;
}

async function openProject(capstan: Capstan, mark: string) {
  const { project_id } = await made<{ project_id: string }>(
    capstan.request('POST', '/v1/projects', { name: mark }),
  );
  const wanted = { name: mark, scopes: ['admin'], projects: [project_id] };
  const { key, key_id } = await made<{ key: string; key_id: string }>(
    capstan.request('POST', '/v1/keys', wanted),
  );
  return { project_id, key_id, client: createClient(() => capstan.url, key) };
}

export function openReview({ request }: CapstanClient, runId: string): Promise<Review> {
  return waitFor(`a question of ${runId}`, async () => {
    const { body } = await request<{ items: Review[] }>('GET', `/v1/reviews?run_id=${runId}&state=open`);
    return body.items[0];
  });
}

async function aSchedule({ request }: CapstanClient, mark: string) {
  const body = { name: mark, pipeline: mark, cron: '0 0 29 2 *', job: { mark } };
  const schedule = await made<Schedule>(request('POST', '/v1/schedules', body));
  await made(request('POST', `/v1/schedules/${schedule.schedule_id}/trigger`));
  const scheduled = await waitFor('the run of the schedule', async () => {
    const { body: listed } = await request<{ items: RunSummary[] }>('GET', `/v1/runs?pipeline=${mark}`);
    return listed.items.find(({ schedule_id }) => schedule_id === schedule.schedule_id);
  });
  return { schedule, scheduled };
}

async function aKeptResult(client: CapstanClient, mark: string): Promise<void> {
  await waitFor('a result to be kept', async () => {
    const run = await client.submit([echoed('a', mark, { cache: { ttl: '1h' } })], {}, { pipeline: mark });
    await client.ended(run.run_id);
    const { body } = await client.request<{ items: CacheEntry[] }>('GET', '/v1/cache');
    return body.items.length > 0;
  });
}

async function fillOffice({ request }: CapstanClient, mark: string): Promise<string> {
  const steps = [echoed('a', mark)];
  await made(request('POST', '/v1/pipelines', { pipeline: mark, version: '1', steps }));
  await made(request('PUT', `/v1/pipelines/${mark}/aliases/live`, { version: '1' }));
  await made(request('POST', '/v1/webhooks', { url: `http://127.0.0.1:9/${mark}`, events: ['run.ended'] }));
  const pattern = { job_type: 'echo', error_patterns: [mark] };
  await made(request('POST', '/skills', { pattern, instructions: mark, source: mark }));
  const { job_id } = await made<{ job_id: string }>(request('POST', '/v1/jobs', { job: { mark } }));
  await made(
    request('PUT', `/v1/media/${job_id}/in.txt`, `"${mark}"`, { 'content-type': 'application/json' }),
  );
  await made(request('POST', '/v1/escalations', { job_type: mark, prompt: mark }));
  const call = { input: { mark } };
  await made(request('POST', '/v1/capabilities/echo/exec', call, { 'idempotency-key': mark }));
  return job_id;
}

/** @param mark a valid pipeline name */
export async function aProjectInUse(capstan: Capstan, mark: string): Promise<ProjectInUse> {
  const { client, ...facts } = await openProject(capstan, mark);
  const job_id = await fillOffice(client, mark);
  await aKeptResult(client, mark);
  const extra = { pipeline: mark };
  const done = await client.ended((await client.submit([echoed('a', mark)], { mark }, extra)).run_id);
  const ask = { id: 'ask', review: { title: mark }, depends_on: ['a'] };
  const asked = await client.submit([echoed('a', mark), ask], { mark }, extra);
  const hold = { id: 'h', capability: 'hold', input: { mark }, depends_on: ['a'] };
  const called = await client.submit([echoed('a', mark), hold], { mark }, extra);
  await openReview(client, asked.run_id);
  const { schedule, scheduled } = await aSchedule(client, mark);
  await client.ended(scheduled.run_id);
  const instance = await startInstance(client, { name: `own-${mark}` });
  return { ...facts, ...client, mark, job_id, called, asked, done, scheduled, schedule, instance };
}
