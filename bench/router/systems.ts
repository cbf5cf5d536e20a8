/** Who is measured, and how each is asked for the same thing. */
import { requestText } from './payload.ts';

export interface System {
  readonly name: string;
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Name of its process in the stack; null = it is the upstream itself. */
  readonly part: string | null;
}

export interface Addresses {
  readonly upstream: string;
  readonly koa: string;
  readonly httpProxy: string;
  readonly portkey: string;
  readonly capstan: CapstanServer;
  /** Null where no other checkout takes part. */
  readonly beside: CapstanServer | null;
}

export interface CapstanServer {
  readonly url: string;
  readonly apiKey: string;
  /** Name of its process in the stack. */
  readonly part: string;
}

export const freeCapability = 'bench-free';
export const paidCapability = 'bench-paid';

const json = { 'content-type': 'application/json' };

/** Follows the name of a system of another checkout. */
export const besideMark = ', other checkout';

function describeCapstan({ url, apiKey, part }: CapstanServer, mark: string): readonly System[] {
  const routed = (name: string, capability: string): System => ({
    name: `${name}${mark}`,
    origin: url,
    part,
    path: `/v1/capabilities/${capability}/exec`,
    headers: { ...json, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ input: { text: requestText } }),
  });
  return [routed('Capstan free', freeCapability), routed('Capstan paid', paidCapability)];
}

export function describeSystems(at: Addresses): readonly System[] {
  const exec = { path: '/exec', headers: json, body: JSON.stringify({ text: requestText }) };
  return [
    { name: 'undici direct', ...exec, origin: at.upstream, part: null },
    { name: 'http-proxy', ...exec, origin: at.httpProxy, part: 'http-proxy' },
    { name: 'Koa relay', ...exec, origin: at.koa, part: 'Koa relay' },
    {
      name: 'Portkey',
      origin: at.portkey,
      part: 'Portkey',
      path: '/v1/chat/completions',
      headers: {
        ...json,
        authorization: 'Bearer none',
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${at.upstream}/v1`,
      },
      body: JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: requestText }] }),
    },
    ...describeCapstan(at.capstan, ''),
    ...(at.beside === null ? [] : describeCapstan(at.beside, besideMark)),
  ];
}
