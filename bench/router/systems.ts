/** Who is measured, and how each is asked for the same thing. */
import { requestText } from './payload.ts';

/** Calls of a capability, and chat completions in OpenAI's form: whole and as a stream. */
export const groups = ['exec', 'chat', 'stream'] as const;
export type Group = (typeof groups)[number];

export interface System {
  readonly name: string;
  readonly group: Group;
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether the answer comes in pieces. */
  readonly isStream: boolean;
  /** Name of its process in the stack; null = it is the upstream itself. */
  readonly part: string | null;
}

export interface Addresses {
  readonly upstream: string;
  readonly koa: string;
  readonly httpProxy: string;
  readonly portkey: string;
  /** Null where no row needs it. */
  readonly litellm: GatewayWithKey | null;
  readonly capstan: CapstanServer;
  /** Null where no other checkout takes part. */
  readonly beside: CapstanServer | null;
}

export interface GatewayWithKey {
  readonly url: string;
  readonly apiKey: string;
}

export interface CapstanServer extends GatewayWithKey {
  /** Name of its process in the stack. */
  readonly part: string;
}

export const freeCapability = 'bench-free';
export const paidCapability = 'bench-paid';
export const freeModel = 'model.bench-free';
export const paidModel = 'model.bench-paid';
/** Served by a wrapped model, which asks the upstream. */
export const packagedModel = 'model.bench-packaged';

const json = { 'content-type': 'application/json' };

/** Follows the name of a system of another checkout. */
export const besideMark = ', other checkout';

export function describeExec({ url, apiKey, part }: CapstanServer, mark: string): readonly System[] {
  const routed = (name: string, capability: string): System => ({
    name: `${name}${mark}`,
    group: 'exec',
    origin: url,
    part,
    isStream: false,
    path: `/v1/capabilities/${capability}/exec`,
    headers: { ...json, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ input: { text: requestText } }),
  });
  return [routed('Capstan free', freeCapability), routed('Capstan paid', paidCapability)];
}

type Place = Pick<System, 'name' | 'origin' | 'path' | 'headers' | 'part'>;

/** A request that all gateways get in the same form. */
function describeChat(group: 'chat' | 'stream', model: string, { name, ...place }: Place): System {
  const isStream = group === 'stream';
  const messages = [{ role: 'user', content: requestText }];
  return {
    ...place,
    group,
    name: `${group}: ${name}`,
    isStream,
    body: JSON.stringify({ model, messages, ...(isStream ? { stream: true } : {}) }),
  };
}

function portkey({ portkey, upstream }: Addresses): Place {
  return {
    name: 'Portkey',
    origin: portkey,
    part: 'Portkey',
    path: '/v1/chat/completions',
    headers: {
      ...json,
      authorization: 'Bearer none',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `${upstream}/v1`,
    },
  };
}

function litellmPlace({ url, apiKey }: GatewayWithKey): Place {
  const headers = { ...json, authorization: `Bearer ${apiKey}` };
  return { name: 'LiteLLM', origin: url, part: 'LiteLLM', path: '/v1/chat/completions', headers };
}

function placeOf({ url, apiKey, part }: CapstanServer): Omit<Place, 'name'> {
  return {
    origin: url,
    part,
    path: '/openai/v1/chat/completions',
    headers: { ...json, authorization: `Bearer ${apiKey}` },
  };
}

/** A chat completion of the model, with labels. */
export function describeLabelled(capstan: CapstanServer, model: string, labels: string): System {
  const place = { ...placeOf(capstan), name: model };
  return describeChat('chat', model, { ...place, headers: { ...place.headers, 'x-capstan-labels': labels } });
}

function describeCapstanChats(
  group: 'chat' | 'stream',
  capstan: CapstanServer,
  mark: string,
): readonly System[] {
  const place = placeOf(capstan);
  const rows = [
    ['Capstan free', freeModel],
    ['Capstan paid', paidModel],
  ] as const;
  return rows.map(([name, model]) => describeChat(group, model, { ...place, name: `${name}${mark}` }));
}

/** Streams of chat completions, free and paid. */
export function describeStreams(capstan: CapstanServer): readonly System[] {
  return describeCapstanChats('stream', capstan, '');
}

function describeChats(group: 'chat' | 'stream', at: Addresses): readonly System[] {
  const path = '/v1/chat/completions';
  const direct = { name: 'direct', origin: at.upstream, part: null, path, headers: json };
  const { litellm, beside } = at;
  return [
    describeChat(group, 'bench', direct),
    describeChat(group, 'bench', portkey(at)),
    ...(litellm === null ? [] : [describeChat(group, 'bench', litellmPlace(litellm))]),
    ...describeCapstanChats(group, at.capstan, ''),
    describeChat(group, packagedModel, { ...placeOf(at.capstan), name: 'Capstan, packaged model' }),
    ...(beside === null ? [] : describeCapstanChats(group, beside, besideMark)),
  ];
}

function describeExecs(at: Addresses): readonly System[] {
  const exec = {
    group: 'exec',
    isStream: false,
    path: `/${freeCapability}/exec`,
    headers: json,
    body: JSON.stringify({ text: requestText }),
  } as const;
  return [
    { name: 'undici direct', ...exec, origin: at.upstream, part: null },
    { name: 'http-proxy', ...exec, origin: at.httpProxy, part: 'http-proxy' },
    { name: 'Koa relay', ...exec, origin: at.koa, part: 'Koa relay' },
    { ...describeChat('chat', 'bench', portkey(at)), name: 'Portkey', group: 'exec' },
    ...describeExec(at.capstan, ''),
    ...(at.beside === null ? [] : describeExec(at.beside, besideMark)),
  ];
}

export function describeSystems(at: Addresses, only: readonly Group[]): readonly System[] {
  return only.flatMap((group) => (group === 'exec' ? describeExecs(at) : describeChats(group, at)));
}
