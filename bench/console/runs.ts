/** An instance that answers at once, and wide runs over it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Run } from '@capstan/core/contracts/run';
import type { StackFile } from '@capstan/core/contracts/stack';

async function post<Body>({ api_url, api_key }: StackFile, path: string, body: object): Promise<Body> {
  const answer = await fetch(`${api_url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Body;
}

const spec = {
  name: 'echo',
  version: '1.0.0',
  description: 'Answers at once',
  input: { type: 'object' },
  output: { type: 'object' },
  cost_model: { type: 'free', rate_usd: 0 },
};

export async function startEcho(info: StackFile): Promise<Server> {
  const answers: Readonly<Record<string, object>> = {
    '/spec': spec,
    '/health': { status: 'ok', name: 'echo', version: '1.0.0', uptime_ms: 1 },
    '/exec': { ok: true, output: {} },
  };
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answers[request.url ?? ''] ?? {}));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { name, version, cost_model } = spec;
  const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  await post(info, '/v1/capabilities', {
    name,
    version,
    cost_model,
    ...urls,
    tags: ['local'],
    max_concurrency: 200,
  });
  return server;
}

const width = 40;

export interface Submitted {
  readonly runId: string;
  readonly steps: number;
}

type FirstLayer = { readonly capability: string } | { readonly wait: string };

/** Layers of 40 steps, each step after one of the layer before. */
async function submitLayers(info: StackFile, count: number, first: FirstLayer): Promise<Submitted> {
  const steps = Array.from({ length: count }, (_, index) => {
    const id = `s${index}`;
    return index < width ? { id, ...first } : { id, capability: 'echo', depends_on: [`s${index - width}`] };
  });
  const definition = { pipeline: 'wide', version: String(count), steps };
  const { run_id } = await post<Run>(info, '/v1/runs', { definition, job: {} });
  return { runId: run_id, steps: count };
}

export function submitWide(info: StackFile, count: number): Promise<Submitted> {
  return submitLayers(info, count, { capability: 'echo' });
}

/** Goes no further than its first steps while a bench lasts. */
export function submitWaiting(info: StackFile, count: number): Promise<Submitted> {
  return submitLayers(info, count, { wait: '12h' });
}
