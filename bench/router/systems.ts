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
  readonly capstan: string;
  readonly apiKey: string;
}

export const freeCapability = 'bench-free';
export const paidCapability = 'bench-paid';

const json = { 'content-type': 'application/json' };

export function describeSystems(at: Addresses): readonly System[] {
  const exec = { path: '/exec', headers: json, body: JSON.stringify({ text: requestText }) };
  const routed = (capability: string) => ({
    origin: at.capstan,
    part: 'server',
    path: `/v1/capabilities/${capability}/exec`,
    headers: { ...json, authorization: `Bearer ${at.apiKey}` },
    body: JSON.stringify({ input: { text: requestText } }),
  });
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
    { name: 'Capstan free', ...routed(freeCapability) },
    { name: 'Capstan paid', ...routed(paidCapability) },
  ];
}
