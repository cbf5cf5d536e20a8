/**
 * A provider of jobs that speaks the recorded protocols of Replicate (`/v1/predictions`), fal's queue (`/fal-ai/…`),
 * Cog (`PUT /predictions/{id}`), and one of its own (`/jobs`). Each request for the state of a job asks the script.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface ProviderJob {
  readonly id: string;
  readonly input: Record<string, unknown>;
  state: 'queued' | 'running' | 'done' | 'failed' | 'cancelled';
  output: unknown;
  error: string | null;
  logs: string;
  polls: number;
}

export interface ProviderRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

export interface ProviderServer {
  readonly url: string;
  readonly jobs: readonly ProviderJob[];
  readonly requests: readonly ProviderRequest[];
  /** Called at each request for the state of a job. */
  onPoll(script: (job: ProviderJob) => void): void;
  /** Answers the next requests with these statuses. */
  refuse(...statuses: readonly number[]): void;
  /** Answers the next request with this status and text. */
  tell(status: number, text: string): void;
  /** Forgets all jobs, as providers do after a while. */
  forget(): void;
  close(): Promise<void>;
}

interface Exchange extends ProviderRequest {
  readonly url: string;
  readonly response: ServerResponse;
}

interface State {
  readonly jobs: ProviderJob[];
  script: (job: ProviderJob) => void;
}

type Answer = readonly [status: number, body: unknown];

function addJob(state: State, input: unknown, id = `job-${state.jobs.length + 1}`): ProviderJob {
  const job: ProviderJob = {
    id,
    input: input as Record<string, unknown>,
    state: 'queued',
    output: null,
    error: null,
    logs: '',
    polls: 0,
  };
  state.jobs.push(job);
  return job;
}

function poll(state: State, job: ProviderJob): ProviderJob {
  job.polls += 1;
  if (job.state === 'queued' || job.state === 'running') state.script(job);
  return job;
}

const replicateStates = {
  queued: 'starting',
  running: 'processing',
  done: 'succeeded',
  failed: 'failed',
  cancelled: 'canceled',
} as const;

function toPrediction({ id, input, state, output, error, logs }: ProviderJob): object {
  const metrics = state === 'done' ? { predict_time: 2.5 } : {};
  return { id, input, output, error, logs, metrics, status: replicateStates[state] };
}

function answerReplicate(state: State, { method, path, body }: Exchange): Answer | null {
  const rest = path.match(
    /^\/v1\/(?:(?:models|deployments)\/[^/]+\/[^/]+\/)?predictions(?:\/([^/]+)(\/cancel)?)?$/,
  );
  if (rest === null) return null;
  const [, id, cancel] = rest;
  if (id === undefined) return [201, toPrediction(addJob(state, (body as { input: unknown }).input))];
  const job = state.jobs.find((one) => one.id === id);
  if (job === undefined) return [404, { detail: 'The requested resource could not be found.' }];
  if (cancel !== undefined && method === 'POST') job.state = 'cancelled';
  else poll(state, job);
  return [200, toPrediction(job)];
}

function answerFal(state: State, { method, path, body, url }: Exchange): Answer | null {
  const rest = path.match(/^\/fal-ai\/[^/?]+(?:\/requests\/([^/?]+)(\/status|\/cancel)?)?(?:\/dev)?(\?.*)?$/);
  if (rest === null) return null;
  const [, id, part] = rest;
  if (id === undefined) {
    const job = addJob(state, body);
    const own = `${url}/fal-ai/flux/requests/${job.id}`;
    const urls = { status_url: `${own}/status`, response_url: own, cancel_url: `${own}/cancel` };
    return [200, { request_id: job.id, queue_position: 2, ...urls }];
  }
  const job = state.jobs.find((one) => one.id === id);
  if (job === undefined) return [404, { detail: 'not found' }];
  if (part === '/cancel' && method === 'PUT') {
    job.state = 'cancelled';
    return [202, { status: 'CANCELLATION_REQUESTED' }];
  }
  if (part === undefined) return job.state === 'failed' ? [422, { detail: job.error }] : [200, job.output];
  poll(state, job);
  if (job.state === 'queued') return [202, { status: 'IN_QUEUE', queue_position: 1 }];
  const logs = job.logs === '' ? [] : [{ message: job.logs }];
  if (job.state === 'running') return [202, { status: 'IN_PROGRESS', logs }];
  return [200, { status: 'COMPLETED', logs, metrics: { inference_time: 1.5 } }];
}

/** A PUT waits until the prediction has ended; with the id of a running one it answers 202. */
async function answerCog(state: State, { method, path, body }: Exchange): Promise<Answer | null> {
  const [, id, cancel] = path.match(/^\/predictions\/([^/]+)(\/cancel)?$/) ?? [];
  if (id === undefined) return null;
  const known = state.jobs.find(
    (one) => one.id === id && (one.state === 'queued' || one.state === 'running'),
  );
  if (cancel !== undefined && method === 'POST') {
    if (known === undefined) return [404, {}];
    known.state = 'cancelled';
    return [200, {}];
  }
  if (known !== undefined) return [202, toPrediction(known)];
  const job = addJob(state, (body as { input: unknown }).input, id);
  while (job.state === 'queued' || job.state === 'running') {
    poll(state, job);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return [200, toPrediction(job)];
}

function answerOwn(state: State, { method, path, body, url }: Exchange): Answer | null {
  const [, id, part] = path.match(/^\/jobs(?:\/([^/]+)(\/result)?)?$/) ?? [];
  if (!path.startsWith('/jobs')) return null;
  if (id === undefined) {
    const job = addJob(state, body);
    return [202, { id: job.id, status_url: `${url}/jobs/${job.id}` }];
  }
  const job = state.jobs.find((one) => one.id === id);
  if (job === undefined) return [404, {}];
  if (part !== undefined) return [200, { result: job.output }];
  if (method === 'DELETE') job.state = 'cancelled';
  else poll(state, job);
  return [
    200,
    { state: job.state, error: job.error, fraction: job.polls / 4, result_url: `${url}/jobs/${id}/result` },
  ];
}

/** Requests that are no job: `/echo` answers the request, `/image` bytes, `/text` a text. */
function answerPlain({ method, path, headers, body }: Exchange): Answer | null {
  if (path.startsWith('/echo')) return [200, { method, path, headers, body }];
  return path.startsWith('/text') ? [200, 'a text!'] : null;
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  if (String(request.headers['content-type']).includes('json')) return json(request);
  const text = Buffer.concat(await request.toArray()).toString('latin1');
  return text === '' ? null : text;
}

function send(response: ServerResponse, [status, body]: Answer): void {
  const isText = typeof body === 'string';
  response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json' });
  response.end(isText ? body : JSON.stringify(body));
}

export async function startProviderServer(): Promise<ProviderServer> {
  const state: State = { jobs: [], script: finishJob };
  const requests: ProviderRequest[] = [];
  const refusals: Answer[] = [];
  let url = '';
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: path = '', headers } = request;
    const asked = { method, path, headers, body: await readBody(request) };
    requests.push(asked);
    const refusal = refusals.shift();
    if (refusal !== undefined) return send(response, refusal);
    if (path.startsWith('/image')) {
      response.writeHead(200, { 'content-type': 'image/png' });
      return void response.end(Buffer.from([0x89, 0x50, 0x4e, 0x47]));
    }
    const exchange = { ...asked, url, response };
    const answer =
      answerPlain(exchange) ??
      answerReplicate(state, exchange) ??
      answerFal(state, exchange) ??
      answerOwn(state, exchange) ??
      (await answerCog(state, exchange));
    send(response, answer ?? [404, { error: 'no such path' }]);
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: Error) => response.destroy(error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    jobs: state.jobs,
    requests,
    onPoll: (script) => {
      state.script = script;
    },
    refuse: (...next) =>
      void refusals.push(...next.map((status): Answer => [status, { error: 'as the test asked' }])),
    tell: (status, text) => void refusals.push([status, text]),
    forget: () => void state.jobs.splice(0),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Runs at the first poll and is done at the second. */
function finishJob(job: ProviderJob): void {
  job.logs = 'step 1 of 2:  50%|#####';
  job.state = job.polls > 1 ? 'done' : 'running';
  if (job.state === 'done') job.output = { text: `made of ${JSON.stringify(job.input)}` };
}
