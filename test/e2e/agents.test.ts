/** Runs by the tools of a key, over HTTP and over `capstan mcp`, on a real server and worker. */
import { join } from 'node:path';
import type { Run } from '@capstan/core/contracts/run';
import type { CallToolResult, Client, Progress } from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectOverHttp, connectOverStdio, useTool } from '../support/agents.ts';
import { echo, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { placeOf } from '../support/places.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instance: Instance;
const clients: Client[] = [];

const capability = 'agent-cut';
const job_schema = {
  type: 'object',
  properties: { clip: { type: 'string' } },
  required: ['clip'],
  additionalProperties: false,
};
const steps = [
  { id: 'first', capability, input: { clip: '{{ job.clip }}' } },
  { id: 'second', capability, input: { clip: '{{ steps.first.output.clip }}' } },
];

beforeAll(async () => {
  capstan = await shareCapstan();
  instance = await startInstance(capstan, {
    name: capability,
    cost_model: { type: 'per_call', rate_usd: 0.2 },
  });
  const stored = { version: '1', job_schema };
  const question = { title: 'Publish it?', schema: { type: 'object' } };
  const reviewed = [...steps.slice(0, 1), { id: 'ask', depends_on: ['first'], review: question }];
  for (const definition of [
    { ...stored, pipeline: 'agent_reel', steps, output: '{{ steps.second.output.clip }}' },
    { ...stored, pipeline: 'agent_review', steps: reviewed },
  ]) {
    const { status, body } = await capstan.request('POST', '/v1/pipelines', definition);
    expect([status, body]).toMatchObject([201, {}]);
  }
});
afterEach(async () => {
  instance.handle = echo;
  await Promise.all(clients.splice(0).map((client) => client.close()));
});
afterAll(() => instance.stop());

const ways = {
  http: (): Promise<Client> => connectOverHttp(capstan),
  'http, older generation': (): Promise<Client> => connectOverHttp(capstan, 'legacy'),
  stdio: (): Promise<Client> => connectOverStdio(commandLine()),
  'stdio, older generation': (): Promise<Client> => connectOverStdio(commandLine(), 'legacy'),
};

function commandLine(more: readonly string[] = []): readonly string[] {
  const program = join(placeOf('packageFolder'), 'bin/capstan.mjs');
  return [program, 'mcp', '--url', capstan.url, '--key', capstan.key, ...more];
}

async function open(way: keyof typeof ways): Promise<Client> {
  const client = await ways[way]();
  clients.push(client);
  return client;
}

interface ShownRun extends Pick<Run, 'run_id' | 'state' | 'cost_usd' | 'output' | 'awaiting'> {
  readonly decisions: readonly { step_id: string; reason: string; cost_usd: number; chosen: string }[];
  readonly reviews?: readonly { kind: string; reason: string }[];
  readonly next?: string;
}

/** The older generation of the protocol is long over one of them. */
const told = (Object.keys(ways) as (keyof typeof ways)[]).filter(
  (way) => isLong || way !== 'stdio, older generation',
);

describe.each(told)('over %s', (way) => {
  test('a run goes to its end, with progress, its cost, and the reasons of its calls', async () => {
    const client = await open(way);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('run_agent_reel');
    const reports: Progress[] = [];
    const result: CallToolResult = await client.callTool(
      { name: 'run_agent_reel', arguments: { clip: 'a.mp4' } },
      { onprogress: (progress) => void reports.push(progress) },
    );
    const run = result.structuredContent as unknown as ShownRun;
    expect([result.isError, run.state, run.cost_usd, run.output]).toEqual([false, 'succeeded', 0.4, 'a.mp4']);
    expect(run.decisions).toMatchObject([
      { step_id: 'second', cost_usd: 0.2, chosen: instance.endpoint },
      { step_id: 'first', cost_usd: 0.2, chosen: instance.endpoint },
    ]);
    expect(run.decisions.every(({ reason }) => reason !== '')).toBe(true);
    expect(run).not.toHaveProperty('next');
    // The client's library drops reports that arrive in one piece with the result.
    expect(reports.length).toBeGreaterThan(0);
    expect(reports.map(({ progress, total }) => [progress, total])).toEqual(
      [0, 1, 2].slice(0, reports.length).map((done) => [done, 2]),
    );
  });

  test.runIf(isLong || way === 'http')('an invalid job is refused with its place', async () => {
    const client = await open(way);
    const { content, isError } = await useTool<{ code: string; errors: { pointer: string }[] }>(
      client,
      'run_agent_reel',
      {},
    );
    expect([isError, content.code]).toEqual([true, 'job_invalid']);
    expect(content.errors[0]?.pointer).toBe('/job/clip');
  });
});

test('each end of a step is reported before the result', async () => {
  const params = { name: 'run_agent_reel', arguments: { clip: 'a.mp4' }, _meta: { progressToken: 7 } };
  const response = await fetch(`${capstan.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${capstan.key}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  const messages = lines.map((line) => JSON.parse(line.slice('data: '.length)));
  expect(
    messages.map((message) => message.params?.progress ?? message.result.structuredContent.state),
  ).toEqual([0, 1, 2, 'succeeded']);
});

test('a run that takes longer answers its id, and is asked for its end', async () => {
  const client = await open('http');
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  instance.handle = async (exec, response) => {
    await released;
    return echo(exec, response);
  };
  const wanted = { pipeline: 'agent_reel', job: { clip: 'b.mp4' }, wait_s: 0, idempotency_key: 'once' };
  const { content: begun } = await useTool<ShownRun>(client, 'start_run', wanted);
  expect(['queued', 'running']).toContain(begun.state);
  expect(begun.next).toContain(begun.run_id);
  const { content: again } = await useTool<ShownRun>(client, 'start_run', wanted);
  expect(again.run_id).toBe(begun.run_id);
  const asked = useTool<ShownRun>(client, 'get_run', { run_id: begun.run_id, wait_s: 50 });
  release();
  expect((await asked).content).toMatchObject({ state: 'succeeded', output: 'b.mp4' });
  const { content: step } = await useTool<{ attempts: { decision: { reason: string } }[] }>(
    client,
    'get_run',
    {
      run_id: begun.run_id,
      step_id: 'first',
    },
  );
  expect(step.attempts[0]?.decision.reason).not.toBe('');
});

test('a run at its ceiling shows that it waits for a review, why, and can be cancelled', async () => {
  const client = await open('http');
  const job = { clip: 'c.mp4' };
  const { content: plan } = await useTool<{ within_ceiling: boolean }>(client, 'plan', {
    pipeline: 'agent_reel',
    job,
    budget_ceiling_usd: 0.3,
  });
  expect(plan.within_ceiling).toBe(false);
  const { content: begun } = await useTool<ShownRun>(client, 'start_run', {
    pipeline: 'agent_reel',
    job,
    budget_ceiling_usd: 0.3,
    wait_s: 50,
  });
  const run = await waitFor('its question', async () => {
    const { content } = await useTool<ShownRun>(client, 'get_run', { run_id: begun.run_id });
    return content.reviews === undefined ? undefined : content;
  });
  expect(run).toMatchObject({
    state: 'running',
    cost_usd: 0.2,
    awaiting: ['budget'],
    reviews: [{ kind: 'budget' }],
  });
  expect(run.reviews?.[0]?.reason).toContain('0.3');
  expect(run.next).toContain('a person');
  await useTool(client, 'cancel_run', { run_id: begun.run_id, reason: 'too dear' });
  const { content: ended, isError } = await useTool<ShownRun>(client, 'get_run', {
    run_id: begun.run_id,
    wait_s: 50,
  });
  expect([isError, ended.state]).toEqual([true, 'cancelled']);
});

test('a run that asks a person answers before its time is over', async () => {
  const client = await open('http');
  const { content } = await useTool<ShownRun>(client, 'start_run', {
    pipeline: 'agent_review',
    job: { clip: 'd.mp4' },
    wait_s: 50,
  });
  expect(content).toMatchObject({ awaiting: ['review'], reviews: [{ kind: 'step' }] });
  const { content: reviews } = await useTool<{ items: { review_id: string; version: number }[] }>(
    client,
    'list_reviews',
    { run_id: content.run_id },
  );
  const [review] = reviews.items;
  const { isError } = await useTool(client, 'decide_review', {
    review_id: review?.review_id,
    version: review?.version,
    decision: { action: 'output', output: { yes: true } },
  });
  expect(isError).toBe(false);
  const { content: ended } = await useTool<ShownRun>(client, 'get_run', {
    run_id: content.run_id,
    wait_s: 50,
  });
  expect(ended.state).toBe('succeeded');
});

test.runIf(isLong)('the ceiling of the command limits each call', async () => {
  const client = await connectOverStdio(commandLine(['--ceiling', '0.1']));
  clients.push(client);
  const { content, isError } = await useTool<{ code: string; limit_usd: number }>(
    client,
    `call_${capability}`,
    {},
  );
  expect([isError, content.code, content.limit_usd]).toEqual([true, 'ceiling_too_low', 0.1]);
});

test('a wrong key is an error that names it', async () => {
  const program = join(placeOf('packageFolder'), 'bin/capstan.mjs');
  const client = await connectOverStdio([program, 'mcp', '--url', capstan.url, '--key', 'cap_wrong']);
  clients.push(client);
  await expect(client.listTools()).rejects.toThrow(/unauthenticated/);
});
