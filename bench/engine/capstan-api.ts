/** Capstan's HTTP API as the bench uses it, with its capabilities registered. */
import { Agent } from 'undici';
import { capabilities, capabilityKeys, costModelOf, type Endpoints } from './capabilities.ts';

export interface CapstanApi {
  /** @throws Refusal unless the answer is 2xx */
  post<Answer>(path: string, body: unknown): Promise<Answer>;
  /** @throws Refusal unless the answer is 2xx */
  get<Answer>(path: string): Promise<Answer>;
  /** An open stream of server-sent events. */
  stream(path: string): Promise<AsyncIterable<Uint8Array>>;
}

export class Refusal extends Error {
  readonly status: number;

  constructor(request: string, status: number, text: string) {
    super(`${request}: ${status} ${text}`);
    this.status = status;
  }
}

async function registerCapabilities({ post }: CapstanApi, endpoints: Endpoints): Promise<void> {
  for (const key of capabilityKeys) {
    const endpoint = endpoints[key];
    await post('/v1/capabilities', {
      name: capabilities[key].name,
      version: '1.0.0',
      endpoint,
      max_concurrency: 512,
      tags: [],
      spec_url: `${endpoint}/spec`,
      health_url: `${endpoint}/health`,
      cost_model: costModelOf(capabilities[key]),
    });
  }
}

type Method = 'GET' | 'POST';

function createApi({
  apiUrl: origin,
  apiKey,
}: {
  readonly apiUrl: string;
  readonly apiKey: string;
}): CapstanApi {
  const agent = new Agent({ connections: 64, pipelining: 1 });
  const authorization = `Bearer ${apiKey}`;
  const json = { 'content-type': 'application/json', authorization };
  const ask = async (method: Method, path: string, body: string | null) => {
    const headers = body === null ? { authorization } : json;
    const answer = await agent.request({ origin, path, method, headers, body });
    if (answer.statusCode < 300) return answer.body.json();
    throw new Refusal(`${method} ${path}`, answer.statusCode, await answer.body.text());
  };
  return {
    post: async <Answer>(path: string, body: unknown) =>
      (await ask('POST', path, JSON.stringify(body))) as Answer,
    get: async <Answer>(path: string) => (await ask('GET', path, null)) as Answer,
    stream: async (path) => {
      const headers = { accept: 'text/event-stream', authorization };
      const { statusCode, body } = await agent.request({ origin, path, method: 'GET', headers });
      if (statusCode === 200) return body;
      throw new Refusal(`GET ${path}`, statusCode, await body.text());
    },
  };
}

export async function connectCapstan(
  address: { readonly apiUrl: string; readonly apiKey: string },
  endpoints: Endpoints,
): Promise<CapstanApi> {
  const api = createApi(address);
  await registerCapabilities(api, endpoints);
  return api;
}
