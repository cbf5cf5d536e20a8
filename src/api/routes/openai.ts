/** OpenAI's protocol over the router: programs that speak it call models by changing their address and key. */
import type { IncomingHttpHeaders } from 'node:http';
import type { CancelSignal } from '@capstan/core/cancellation';
import type { ExecRequest } from '@capstan/core/contracts/decision';
import {
  AliasName,
  ModelAlias,
  ModelAliasList,
  ModelAliasRequest,
} from '@capstan/core/contracts/model-alias';
import { passedHeaders } from '@capstan/core/contracts/model-protocol';
import {
  ChatCompletion,
  ChatHeaders,
  ChatRequest,
  EmbeddingsAnswer,
  EmbeddingsRequest,
  Model,
  ModelList,
} from '@capstan/core/contracts/openai';
import { refuseField } from '@capstan/core/errors/app-error';
import type { JsonText } from '@capstan/core/json/text';
import { toLiteral } from '@capstan/core/residency/affinity-key';
import { z } from 'zod';
import type { Caller } from '../../use-cases/access/caller.ts';
import type { ClientRequest } from '../../use-cases/calls/client-protocol.ts';
import type { StreamedModel } from '../../use-cases/calls/model-calls.ts';
import {
  listAliases,
  listModels,
  removeAlias,
  setAlias,
  showModel,
} from '../../use-cases/calls/model-names.ts';
import {
  completeChat,
  embedTexts,
  type OpenAiAnswer,
  type OpenAiOrder,
  streamChat,
} from '../../use-cases/calls/openai.ts';
import { eventStreamHeaders } from '../answer.ts';
import { json } from '../input.ts';
import { requireSmallChat } from '../limits.ts';
import { toOpenAiError } from '../model-errors.ts';
import { CallerHeaders, callingKeyOf, IdempotencyKey, readIdempotency } from '../parameters.ts';
import { type Route, route } from '../route.ts';
import { cacheWordOf, callErrors } from './calls.ts';

export const ModelHeaders = ChatHeaders.extend({
  ...CallerHeaders.shape,
  'idempotency-key': IdempotencyKey.meta({
    description: 'For 24 hours, a repeated request with this key gets the first answer. Not with `stream`.',
  }),
});

interface OpenAiCall {
  readonly requestHeaders: IncomingHttpHeaders;
  readonly caller: Caller;
  readonly headers: z.output<typeof ModelHeaders>;
  readonly bytes: Buffer;
  readonly signal: CancelSignal;
  readonly setHeader: (name: string, value: string) => void;
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.ceil(seconds * 1_000);
}

/** OpenAI's clients wait ten minutes for an answer. */
const usualTimeoutS = 600;

function toClient({ headers, requestHeaders, bytes }: OpenAiCall): ClientRequest {
  const passed = passedHeaders.flatMap((name) => {
    const value = requestHeaders[name];
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  return {
    bytes,
    headers: Object.fromEntries(passed) as ClientRequest['headers'],
    isStrict: headers['x-capstan-strict'] === true,
  };
}

function toConstraints({
  'x-capstan-ceiling-usd': ceiling,
  'x-capstan-priority': priority = 'interactive',
  'x-capstan-tags': tags = [],
  'x-capstan-cache': ttl,
  'x-capstan-timeout': timeoutS = usualTimeoutS,
  'x-capstan-on-budget': on_budget,
  'x-capstan-affinity': session,
}: ChatHeaders): Omit<ExecRequest, 'input'> {
  const limit = ceiling === undefined ? {} : { budget_ceiling_usd: ceiling };
  // Models never call themselves deterministic: the sender of the header still wants the answer.
  const cache = ttl === undefined ? {} : { cache: { ttl_seconds: ttl, insist: true } };
  const affinity = session === undefined ? {} : { affinity: toLiteral(session) };
  return {
    priority,
    tags,
    timeout_ms: Math.ceil(timeoutS * 1_000),
    on_budget,
    ...limit,
    ...cache,
    ...affinity,
  };
}

/** OpenAI's own field for prompts that share a prefix. */
function sessionOf(request: unknown): string | undefined {
  const key: unknown = Object(request).prompt_cache_key;
  return typeof key === 'string' && key !== '' ? key.slice(0, 1_024) : undefined;
}

/** @param user whose call it is, by the protocol's own field */
export function toOrder<Request>(
  call: OpenAiCall,
  request: Request,
  user: string | null | undefined,
): OpenAiOrder<Request> {
  const { caller, headers, bytes, signal, setHeader } = call;
  const session = headers['x-capstan-affinity'] ?? sessionOf(request);
  return {
    client: toClient(call),
    keepAliveMs: toMs(headers['x-capstan-keep-alive']),
    idleMs: toMs(headers['x-capstan-idle-timeout']),
    caller: callingKeyOf(caller, headers, user),
    request,
    constraints: toConstraints({ ...headers, 'x-capstan-affinity': session }),
    idempotency: readIdempotency(headers, bytes),
    signal,
    onNotKept: (reason) => setHeader('X-Capstan-Not-Kept', reason),
  };
}

/** @throws AppError `request_invalid` */
export function refuseKeptStream({ idempotency }: Pick<OpenAiOrder<unknown>, 'idempotency'>): void {
  if (idempotency === null) return;
  throw refuseField('/headers/idempotency-key', 'an Idempotency-Key cannot be kept for a stream');
}

type HeadedCall = Pick<OpenAiCall, 'setHeader' | 'headers'>;

interface KnownRouting {
  readonly routing: NonNullable<StreamedModel['routing']>;
}

/** Sets the headers that show where an answer comes from. */
function nameDecision({ setHeader, headers }: HeadedCall, { routing }: KnownRouting): void {
  setHeader('X-Capstan-Decision', routing.decision_id);
  if (headers['x-capstan-cache'] !== undefined) setHeader('X-Capstan-Cache', cacheWordOf({ routing }));
}

/** Names the fields of the request that the model did not get. */
function nameDropped({ setHeader }: HeadedCall, { dropped }: { readonly dropped: readonly string[] }): void {
  if (dropped.length > 0)
    setHeader('X-Capstan-Dropped', dropped.slice(0, mostNamed).join(', ').replaceAll(unsafe, '?'));
}

const mostNamed = 50;
/** Names of fields are the client's. */
const unsafe = /[^\x20-\x7e]/g;

/** A stream begins before its cost is known, so its headers do not have it. */
export function answerStream(call: HeadedCall, streamed: StreamedModel) {
  const { routing } = streamed;
  if (routing !== null) nameDecision(call, { routing });
  nameDropped(call, streamed);
  return { status: 200, headers: eventStreamHeaders, body: streamed.events } as const;
}

/** Sets the headers that explain an answer. @returns its body */
export function answerOf<Body>(
  { setHeader, headers }: HeadedCall,
  { body, routing, isReplayed, dropped }: OpenAiAnswer<Body>,
): Body {
  nameDecision({ setHeader, headers }, { routing });
  nameDropped({ setHeader, headers }, { dropped });
  setHeader('X-Capstan-Cost-Usd', String(routing.settled_usd ?? 0));
  if (isReplayed) setHeader('Idempotent-Replayed', 'true');
  return body;
}

/** @param body ours, or the text that a provider wrote */
export function answerBody<Body>(body: Body | JsonText<Body>) {
  return { status: 200, body: body as Body } as const;
}

export const openAiRoutes: readonly Route[] = [
  route('POST /openai/v1/chat/completions', {
    operation: 'create_chat_completion',
    tag: 'models',
    summary: "Call a model in the form of OpenAI's chat completions",
    description:
      'The request becomes an ordinary call of the capability `model.NAME`, with routing, budget and decision. `X-Capstan-Decision` and `X-Capstan-Cost-Usd` of the answer name the decision and the cost. With `stream: true` the answer is `text/event-stream`: until its first part the call may fail over to another instance. Its headers name the decision, and `stream_options.include_usage` adds a chunk with the cost. Errors have the form `{"error": {"message", "type", "param", "code"}}`. A client that disconnects cancels its call.',
    isLong: true,
    scope: 'capability:call',
    checksName: true,
    headers: ModelHeaders,
    body: json(ChatRequest, 'chat'),
    responses: { 200: { content: 'text/event-stream', schema: ChatCompletion } },
    errors: [...callErrors, 'not_found'],
    handle: async (ctx, call) => {
      const { body } = call;
      requireSmallChat({ messages: body.messages, tools: body.tools ?? [] }, ctx.config);
      const order = toOrder(call, body, body.user);
      if (body.stream !== true) return answerBody(answerOf(call, await completeChat(ctx, order)));
      refuseKeptStream(order);
      return answerStream(call, await streamChat(ctx, order, toOpenAiError));
    },
  }),
  route('POST /openai/v1/embeddings', {
    operation: 'create_embeddings',
    tag: 'models',
    summary: "Turn texts into vectors in the form of OpenAI's embeddings",
    description:
      'The request becomes an ordinary call of the capability `embed.NAME`. Headers and errors are those of a chat completion.',
    isLong: true,
    scope: 'capability:call',
    checksName: true,
    headers: ModelHeaders,
    body: json(EmbeddingsRequest, 'chat'),
    responses: { 200: EmbeddingsAnswer },
    errors: [...callErrors, 'not_found'],
    result: async (ctx, call) =>
      answerOf(call, await embedTexts(ctx, toOrder(call, call.body, call.body.user))),
  }),
  route('GET /openai/v1/models', {
    operation: 'list_models',
    tag: 'models',
    summary: 'List the models that a request may name',
    description:
      'A model is a capability `model.NAME` for chat completions, or `embed.NAME` for embeddings, or an alias of the project for one. `NAME` alone is accepted too. A key that may call some names alone sees only these.',
    scope: 'capability:read',
    responses: { 200: ModelList },
    result: async (ctx, { caller }) => ({ object: 'list' as const, data: await listModels(ctx, caller) }),
  }),
  route('GET /openai/v1/models/{model}', {
    operation: 'get_model',
    tag: 'models',
    summary: 'Show a model',
    scope: 'capability:read',
    params: z.object({ model: z.string().min(1).max(128) }),
    responses: { 200: Model },
    errors: ['not_found'],
    result: (ctx, { caller, params }) => showModel(ctx, caller, params.model),
  }),
];

const AliasPath = z.object({ name: AliasName });

export const aliasRoutes: readonly Route[] = [
  route('GET /v1/aliases', {
    operation: 'list_model_aliases',
    tag: 'models',
    summary: "List the project's other names for models",
    scope: 'capability:read',
    responses: { 200: ModelAliasList },
    result: (ctx, { caller }) => listAliases(ctx, caller),
  }),
  route('PUT /v1/aliases/{+name}', {
    operation: 'set_model_alias',
    tag: 'models',
    summary: 'Let a name lead to a model, in requests that have the form of OpenAI',
    description:
      'Every process uses it within 5 seconds. An alias goes before a capability whose name is the same without `model.` or `embed.`.',
    scope: 'admin',
    params: AliasPath,
    body: json(ModelAliasRequest, 'small'),
    responses: { 200: ModelAlias },
    errors: ['not_found'],
    result: (ctx, { caller, params, body }) => setAlias(ctx, caller, { ...params, ...body }),
  }),
  route('DELETE /v1/aliases/{+name}', {
    operation: 'delete_model_alias',
    tag: 'models',
    summary: 'Remove an alias of a model',
    scope: 'admin',
    params: AliasPath,
    responses: { 204: 'empty' },
    errors: ['not_found'],
    handle: async (ctx, { caller, params }) => {
      await removeAlias(ctx, caller, params.name);
      return { status: 204 };
    },
  }),
];
