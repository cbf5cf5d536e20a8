/** An OpenID provider with scripted answers, for behaviour that a real one does not offer. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface ProviderAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface ScriptedProvider {
  readonly issuer: string;
  /** By path: `/token`, `/userinfo`, `/jwks`. A missing path is answered by 503. */
  readonly answers: Map<string, (form: URLSearchParams) => ProviderAnswer>;
  readonly close: () => Promise<void>;
}

function describe(issuer: string): ProviderAnswer {
  const places = { authorization: 'authorize', token: 'token', userinfo: 'userinfo' };
  const endpoints = Object.entries(places).map(([name, path]) => [`${name}_endpoint`, `${issuer}/${path}`]);
  return { body: { issuer, jwks_uri: `${issuer}/jwks`, ...Object.fromEntries(endpoints) } };
}

export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const answers: ScriptedProvider['answers'] = new Map();
  const server = createServer(async (request, response) => {
    const answer = answers.get(request.url ?? '')?.(new URLSearchParams(await text(request)));
    const { status = 200, headers = {}, body = {} } = answer ?? { status: 503 };
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  answers.set('/.well-known/openid-configuration', () => describe(issuer));
  return {
    issuer,
    answers,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
