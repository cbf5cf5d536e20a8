/** Capstan's HTTP API as the bench uses it, with its one capability registered. */
import { Agent } from 'undici';
import { capabilityName } from './capability-process.ts';

export interface CapstanApi {
  /** @throws Error with the answer, unless it is 2xx */
  post(path: string, body: unknown): Promise<{ readonly run_id?: string }>;
  /** An open stream of server-sent events. */
  stream(path: string): Promise<AsyncIterable<Uint8Array>>;
}

function registerCapability({ post }: CapstanApi, endpoint: string) {
  return post('/v1/capabilities', {
    name: capabilityName,
    version: '1.0.0',
    endpoint,
    max_concurrency: 512,
    tags: [],
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: { type: 'free', rate_usd: 0 },
  });
}

export async function connectCapstan(
  { apiUrl: origin, apiKey }: { readonly apiUrl: string; readonly apiKey: string },
  endpoint: string,
): Promise<CapstanApi> {
  const agent = new Agent({ connections: 64, pipelining: 1 });
  const authorization = `Bearer ${apiKey}`;
  const json = { 'content-type': 'application/json', authorization };
  const api: CapstanApi = {
    post: async (path, body) => {
      const text = JSON.stringify(body);
      const answer = await agent.request({ origin, path, method: 'POST', headers: json, body: text });
      if (answer.statusCode < 300) return (await answer.body.json()) as { run_id?: string };
      throw new Error(`POST ${path}: ${answer.statusCode} ${await answer.body.text()}`);
    },
    stream: async (path) => {
      const headers = { accept: 'text/event-stream', authorization };
      const { statusCode, body } = await agent.request({ origin, path, method: 'GET', headers });
      if (statusCode === 200) return body;
      throw new Error(`GET ${path}: ${statusCode} ${await body.text()}`);
    },
  };
  await registerCapability(api, endpoint);
  return api;
}
