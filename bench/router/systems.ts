/** Who is measured, and how each is asked for the same thing. */
import { type Protocol, paths, protocols, requestOf, requestText } from './payload.ts';

/** Calls of a capability, and of a model in each protocol, whole and as a stream. */
export const groups = ['exec', ...protocols] as const;
export type Group = (typeof groups)[number];

export interface System {
  readonly name: string;
  readonly group: Group;
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The protocol of the events in which the answer comes; null: it comes whole. */
  readonly streamOf: Protocol | null;
  /** Name of its process in the stack; null = it is the upstream itself. */
  readonly part: string | null;
}

export interface Addresses {
  readonly upstream: string;
  readonly koa: string;
  readonly httpProxy: string;
  readonly portkey: string;
  /** Gateways that only rows of models need. */
  readonly modelGateways: ModelGateways | null;
  readonly capstan: CapstanServer;
  /** Null where no other checkout takes part. */
  readonly beside: CapstanServer | null;
}

export interface GatewayWithKey {
  readonly url: string;
  readonly apiKey: string;
}

export interface ModelGateways {
  readonly litellm: GatewayWithKey;
  /** A compiled one. */
  readonly litellmRs: GatewayWithKey;
}

/** What the gateways call the model; a protocol of another provider has a name of its own. */
export const gatewayModels: Readonly<Record<Protocol, string>> = {
  chat: 'bench',
  messages: 'claude-sonnet-4-6',
  responses: 'bench',
};

export interface CapstanServer extends GatewayWithKey {
  /** Name of its process in the stack. */
  readonly part: string;
}

export const freeCapability = 'bench-free';
export const paidCapability = 'bench-paid';
export const freeModel = 'model.bench-free';
export const paidModel = 'model.bench-paid';
/** Served by wrapped models, which ask the upstream in the protocol of the client. */
export const packagedModels: Readonly<Record<Protocol, string>> = {
  chat: 'model.bench-packaged',
  messages: 'model.bench-packaged-messages',
  responses: 'model.bench-packaged',
};

const json = { 'content-type': 'application/json' };

/** Follows the name of a system of another checkout. */
export const besideMark = ', other checkout';

export function describeExec({ url, apiKey, part }: CapstanServer, mark: string): readonly System[] {
  const routed = (name: string, capability: string): System => ({
    name: `${name}${mark}`,
    group: 'exec',
    origin: url,
    part,
    streamOf: null,
    path: `/v1/capabilities/${capability}/exec`,
    headers: { ...json, authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ input: { text: requestText } }),
  });
  return [routed('Capstan free', freeCapability), routed('Capstan paid', paidCapability)];
}

type Place = Pick<System, 'name' | 'origin' | 'headers' | 'part'>;

/** A request to a model. */
interface Question {
  readonly protocol: Protocol;
  readonly isStream: boolean;
}

/** A request that all get in the same form, but for the name of the model. */
function describeModel(
  { protocol, isStream }: Question,
  { name, path, ...place }: Place & Pick<System, 'path'>,
  model: string,
): System {
  return {
    ...place,
    path,
    group: protocol,
    name: `${protocol}${isStream ? ' stream' : ''}: ${name}`,
    headers: { ...place.headers, ...(protocol === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}) },
    streamOf: isStream ? protocol : null,
    body: JSON.stringify(requestOf(protocol, model, isStream)),
  };
}

function portkey({ portkey, upstream }: Addresses, protocol: Protocol): Place {
  const provider = protocol === 'messages' ? 'anthropic' : 'openai';
  const headers = {
    ...json,
    authorization: 'Bearer none',
    'x-portkey-provider': provider,
    'x-portkey-custom-host': `${upstream}/v1`,
  };
  return { name: 'Portkey', origin: portkey, part: 'Portkey', headers };
}

function placeOf(name: string, part: string, { url, apiKey }: GatewayWithKey): Place {
  return { name, origin: url, part, headers: { ...json, authorization: `Bearer ${apiKey}` } };
}

/** Requests of models to a server of Capstan. */
function describeCapstan(
  question: Question,
  server: CapstanServer,
  rows: readonly (readonly [name: string, model: string])[],
): readonly System[] {
  const path = paths[question.protocol].capstan;
  return rows.map(([name, model]) =>
    describeModel(question, { ...placeOf(name, server.part, server), path }, model),
  );
}

/** A chat completion of the model, with labels. */
export function describeLabelled(server: CapstanServer, model: string, labels: string): System {
  const place = placeOf(model, server.part, server);
  const headers = { ...place.headers, 'x-capstan-labels': labels };
  const question: Question = { protocol: 'chat', isStream: false };
  return describeModel(question, { ...place, headers, path: paths.chat.capstan }, model);
}

const ownModels = [
  ['Capstan free', freeModel],
  ['Capstan paid', paidModel],
] as const;

/** Streams of chat completions, free and paid. */
export function describeStreams(server: CapstanServer): readonly System[] {
  return describeCapstan({ protocol: 'chat', isStream: true }, server, ownModels);
}

function describeModels(question: Question, at: Addresses): readonly System[] {
  const { protocol } = question;
  const { provider: path } = paths[protocol];
  const { modelGateways, capstan, beside } = at;
  const gateways = [
    { name: 'direct', origin: at.upstream, part: null, headers: json },
    portkey(at, protocol),
    ...(modelGateways === null
      ? []
      : [
          placeOf('LiteLLM', 'LiteLLM', modelGateways.litellm),
          placeOf('litellm-rs', 'litellm-rs', modelGateways.litellmRs),
        ]),
  ];
  return [
    ...gateways.map((place) => describeModel(question, { ...place, path }, gatewayModels[protocol])),
    ...describeCapstan(question, capstan, [
      ...ownModels,
      ['Capstan, packaged model', packagedModels[protocol]],
    ]),
    ...(beside === null
      ? []
      : describeCapstan(
          question,
          beside,
          ownModels.map(([name, model]) => [`${name}${besideMark}`, model]),
        )),
  ];
}

function describeExecs(at: Addresses): readonly System[] {
  const exec = {
    group: 'exec',
    streamOf: null,
    path: `/${freeCapability}/exec`,
    headers: json,
    body: JSON.stringify({ text: requestText }),
  } as const;
  const gateway = { ...portkey(at, 'chat'), path: paths.chat.provider };
  const chat = describeModel({ protocol: 'chat', isStream: false }, gateway, gatewayModels.chat);
  return [
    { name: 'undici direct', ...exec, origin: at.upstream, part: null },
    { name: 'http-proxy', ...exec, origin: at.httpProxy, part: 'http-proxy' },
    { name: 'Koa relay', ...exec, origin: at.koa, part: 'Koa relay' },
    { ...chat, name: 'Portkey', group: 'exec' },
    ...describeExec(at.capstan, ''),
    ...(at.beside === null ? [] : describeExec(at.beside, besideMark)),
  ];
}

export function describeSystems(at: Addresses, only: readonly Group[]): readonly System[] {
  return only.flatMap((group) =>
    group === 'exec'
      ? describeExecs(at)
      : [false, true].flatMap((isStream) => describeModels({ protocol: group, isStream }, at)),
  );
}
