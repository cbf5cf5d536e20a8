/**
 * Wrapped capabilities under a real Capstan: `capstan capability wrap` as its author starts it, called by pipelines,
 * priced by what it used, killed and cancelled.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkCapability } from '@capstan/capability/conformance';
import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { choosePort } from '../../src/dev/ports.ts';
import { isRunning, readProcessMark } from '../../src/dev/supervisor/child-process.ts';
import { type ProviderServer, startProviderServer } from '../support/provider-server.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const capstan = useMortalCapstan();
let folder: string;
let provider: ProviderServer;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-wrap-'));
  provider = await startProviderServer();
});
afterEach(async () => {
  const open = children
    .splice(0)
    .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  await Promise.all(
    open.map((child) => {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      return gone;
    }),
  );
});
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true, force: true });
});

interface Wrapping {
  readonly child: ChildProcess;
  readonly endpoint: string;
}

async function upCount(name: string): Promise<number> {
  const { body } = await capstan.request<CapabilityDetail>('GET', `/v1/capabilities/${name}`);
  return (
    body.instances?.filter(({ state, spec_digest }) => state === 'up' && spec_digest !== null).length ?? 0
  );
}

/** Starts `capstan capability wrap` and waits until the router knows one more instance. */
async function wrap(name: string, text: string): Promise<Wrapping> {
  const before = await upCount(name);
  const port = await choosePort([]);
  const file = join(folder, `${name}-${port}.yaml`);
  await writeFile(file, text);
  const args = ['capability', 'wrap', file, '--state-dir', join(folder, 'state')];
  const child = spawn(process.execPath, [join(inject('packageFolder'), 'bin/capstan.mjs'), ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ROUTER_URL: capstan.url,
      ROUTER_TOKEN: capstan.key,
      MEDIA_URL: capstan.mediaUrl,
      PORT: String(port),
      PROVIDER_URL: provider.url,
      PROVIDER_TOKEN: 'a-secret-token',
    },
  });
  children.push(child);
  await waitFor(`an instance of ${name}`, async () => (await upCount(name)) === before + 1);
  return { child, endpoint: `http://127.0.0.1:${port}` };
}

/** Writes its process id into `marks`, then waits for the file `go`. */
const script = `
const { appendFileSync, existsSync } = require('node:fs');
const { marks, go } = JSON.parse(process.argv[1]);
appendFileSync(marks, process.pid + '\\n');
const timer = setInterval(() => existsSync(go) && (clearInterval(timer), console.log('{"words": 250}')), 20);
`;

/** Waits in a program. Its price: what it used. */
function aWaiter(name: string, more: string): string {
  return `kind: command
name: ${name}
version: 1.0.0
description: Waits for a file.
input: {type: object, required: [marks, go], properties: {marks: {type: string}, go: {type: string}}}
output: {type: object, required: [words], properties: {words: {type: integer}}}
${more}command:
  argv: [${JSON.stringify(process.execPath)}, -e, ${JSON.stringify(script)}, --, "{{ input | json }}"]
  stdout: json
  grace: 100ms
`;
}

/** The processes of the programs. */
async function readMarks(file: string, count: number): Promise<number[]> {
  return waitFor(`${count} programs`, async () => {
    const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);
    if (lines.length < count) return undefined;
    return lines.map(Number);
  });
}

function aJob(name: string): { readonly marks: string; readonly go: string } {
  return { marks: join(folder, `${name}.marks`), go: join(folder, `${name}.go`) };
}

async function submit(capability: string, job: object): Promise<string> {
  const input = { marks: '{{ job.marks }}', go: '{{ job.go }}' };
  return (await capstan.submit([{ id: 'work', capability, input }], job)).run_id;
}

async function stepOf(runId: string): Promise<StepDetail> {
  return (await capstan.request<StepDetail>('GET', `/v1/runs/${runId}/steps/work`)).body;
}

test('a killed instance is left for the priced one, whose call costs what it used', async () => {
  const free = await wrap('wrap-fails-over', aWaiter('wrap-fails-over', 'tags: [local]\n'));
  const measured =
    'cost: {type: per_call, rate_usd: 1, measured: [{value: "{{ answer.words }}", rate_usd: 0.04, per: 1000}]}\n';
  const priced = await wrap('wrap-fails-over', aWaiter('wrap-fails-over', measured));
  const job = aJob('fails-over');
  const runId = await submit('wrap-fails-over', job);
  const [first = 0] = await readMarks(job.marks, 1);
  const program = { pid: first, mark: readProcessMark(first) ?? '' };
  free.child.kill('SIGKILL');
  // A guard ends its program.
  await waitFor('the end of the program', async () => !isRunning(program));
  await readMarks(job.marks, 2);
  await writeFile(job.go, '');
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded', cost_usd: 0.01 });
  const step = await stepOf(runId);
  expect(step.output).toEqual({ words: 250, cost_usd: 0.01 });
  expect(step.attempts).toMatchObject([{ endpoint: free.endpoint }, { endpoint: priced.endpoint }]);
});

test('a cancelled run ends the program', async () => {
  const { endpoint } = await wrap('wrap-cancels', aWaiter('wrap-cancels', ''));
  expect((await checkCapability(endpoint)).filter(({ ok }) => !ok)).toEqual([]);
  const job = aJob('cancels');
  const runId = await submit('wrap-cancels', job);
  const [first = 0] = await readMarks(job.marks, 1);
  const program = { pid: first, mark: readProcessMark(first) ?? '' };
  await capstan.request('POST', `/v1/runs/${runId}/cancel`);
  expect(await capstan.ended(runId)).toMatchObject({ state: 'cancelled' });
  await waitFor('the end of the program', async () => !isRunning(program));
});

const hosted = `kind: replicate
name: wrap-hosted
version: 1.0.0
description: Asks a hosted model.
input: {type: object, required: [prompt], properties: {prompt: {type: string}}}
output: {type: object, required: [text], properties: {text: {type: string}}}
cost: {type: per_call, rate_usd: 1, measured: [{value: "{{ answer.metrics.predict_time }}", rate_usd: 0.1}]}
result: {text: "{{ answer.output.text }}"}
replicate:
  base_url: "\${PROVIDER_URL}/v1"
  token: \${PROVIDER_TOKEN}
  model: owner/name
  every: 20ms
`;

test('the worker is killed while a provider works: the second attempt finds the job, which is paid once', async () => {
  await wrap('wrap-hosted', hosted);
  provider.onPoll(() => undefined);
  const steps = [{ id: 'work', capability: 'wrap-hosted', input: { prompt: 'a cat' } }];
  const { run_id: runId } = await capstan.submit(steps);
  await waitFor('the job', async () => (provider.jobs[0]?.polls ?? 0) > 0);
  await capstan.killWorker('SIGKILL');
  await capstan.startWorker();
  await waitFor('the second attempt', async () => (await stepOf(runId)).attempts.length === 2);
  provider.onPoll((job) => Object.assign(job, { state: 'done', output: { text: 'once' } }));
  const run = await capstan.ended(runId);
  expect(run).toMatchObject<Partial<Run>>({ state: 'succeeded' });
  expect((await stepOf(runId)).output).toEqual({ text: 'once', cost_usd: 0.25 });
  expect(provider.jobs.length).toBe(1);
});
