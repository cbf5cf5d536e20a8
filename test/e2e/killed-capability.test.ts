import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CapabilityDetail, Health } from '@capstan/core/contracts/capability';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { runFfmpeg } from '../../capabilities/media-tools/run-tool.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const capstan = useMortalCapstan();
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-killed-'));
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** The concat sample as a process; without a router it registers nowhere. */
async function startConcat(
  environment: NodeJS.ProcessEnv,
): Promise<{ child: ChildProcess; endpoint: string }> {
  const port = await choosePort([]);
  const packageFolder = inject('packageFolder');
  const concat = join(packageFolder, 'dist/capabilities/concat');
  const args = [join(packageFolder, 'bin/capstan.mjs'), 'capability', 'start', concat, '--in-process'];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, PORT: String(port), MEDIA_URL: capstan.mediaUrl, ...environment },
    stdio: 'ignore',
  });
  children.push(child);
  const endpoint = `http://127.0.0.1:${port}`;
  await waitFor('the instance', () =>
    fetch(`${endpoint}/health`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return { child, endpoint };
}

test('concat free and local is killed -9 at work: the run completes on the priced one, and shows why', async () => {
  const free = await startConcat({ ROUTER_URL: capstan.url, ROUTER_TOKEN: capstan.key });
  const hosted = await startConcat({});
  await capstan.request('POST', '/v1/capabilities', {
    name: 'concat',
    version: '1.0.0',
    endpoint: hosted.endpoint,
    tags: ['hosted'],
    spec_url: `${hosted.endpoint}/spec`,
    health_url: `${hosted.endpoint}/health`,
    cost_model: { type: 'per_call', rate_usd: 0.01 },
  });
  await waitFor('both instances', async () => {
    const { body } = await capstan.request<CapabilityDetail>('GET', '/v1/capabilities/concat');
    return body.instances?.filter(({ spec_digest }) => spec_digest !== null).length === 2;
  });

  const clip = join(folder, 'clip.mp4');
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=30:duration=5'];
  await runFfmpeg(
    await locateMediaTools(folder),
    [...picture, '-c:v', 'libx264', '-preset', 'ultrafast', clip],
    AbortSignal.timeout(60_000),
  );
  const job = {
    clips: [{ media_store_path: 'media://job/clip.mp4' }, { media_store_path: 'media://job/clip.mp4' }],
  };
  const { body: created } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job });
  const upload = await fetch(`${capstan.url}/v1/media/${created.job_id}/clip.mp4`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${capstan.key}`, 'content-type': 'video/mp4' },
    body: await readFile(clip),
  });
  expect(upload.status).toBeLessThan(300);

  const input = { clips: '{{ job.clips }}', output_path: 'media://{{ run.job_id }}/out.mp4' };
  const steps = [{ id: 'join', capability: 'concat', input }];
  const { body: run } = await capstan.request<Run>('POST', '/v1/runs', {
    definition: { pipeline: 'p', version: '1', steps },
    job_id: created.job_id,
  });
  await waitFor('the instance to be at work', async () => {
    const health = (await (await fetch(`${free.endpoint}/health`)).json()) as Health;
    return health.queue_depth === 1;
  });
  free.child.kill('SIGKILL');

  expect(await capstan.ended(run.run_id, 90_000)).toMatchObject({ state: 'succeeded', cost_usd: 0.01 });
  const { body: step } = await capstan.request<StepDetail>('GET', `/v1/runs/${run.run_id}/steps/join`);
  expect(step.output).toMatchObject({ duration_ms: expect.closeTo(10_000, -3) });
  expect(step.attempts).toMatchObject([
    {
      endpoint: free.endpoint,
      ambiguity: 'ambiguous',
      decision: { reason: expect.stringContaining('free, local') },
    },
    {
      endpoint: hosted.endpoint,
      ambiguity: 'answered',
      decision: { reason: expect.stringContaining('USD') },
    },
  ]);
});
