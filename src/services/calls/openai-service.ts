/**
 * Requests in OpenAI's form: each is an ordinary direct call of a capability, `model.…` for a chat completion and
 * `embed.…` for embeddings, with its routing, budget and decision. A stream is answered from the first part on, so until then a call may still fail over to another
 * instance, and its error has a status of its own.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ExecAnswer, ExecRequest } from '../../contracts/decision.ts';
import {
  type ChatCompletion,
  type ChatRequest,
  EmbeddingResult,
  type EmbeddingsAnswer,
  type EmbeddingsRequest,
  type Model,
  ModelResult,
} from '../../contracts/openai.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import { createNameSuggester } from '../../core/nearest-name.ts';
import {
  type ChatHead,
  closingChunks,
  deltaChunk,
  openingChunk,
  toCompletion,
  toEmbeddingInput,
  toEmbeddings,
  toModelInput,
  wholeDelta,
} from '../../core/openai.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import { AppError, toAppError } from '../../errors/app-error.ts';
import type { Idempotency } from '../idempotency.ts';
import { type CallCtx, makeDirectCall } from './call-service.ts';

export interface OpenAiOrder<Request> {
  readonly projectId: string;
  /** Key, user and labels (core/money/scoped-budget.ts). */
  readonly scopes: readonly string[];
  readonly request: Request;
  /** The constraints of the route, as headers give them. */
  readonly constraints: Omit<ExecRequest, 'input'>;
  readonly idempotency: Idempotency | null;
  /** Aborts when the client disconnects; the call is cancelled then. */
  readonly signal: CancelSignal;
  /** Receives the tokens that the model reports. */
  readonly usedTokens: (tokens: number) => void;
}

type ChatOrder = OpenAiOrder<ChatRequest>;

export interface OpenAiAnswer<Body> {
  readonly body: Body;
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
}

/** What the names of capabilities begin with that serve a kind of request. */
const prefixes = { chat: 'model.', embeddings: 'embed.' } as const;
type ModelKind = keyof typeof prefixes;

function isModel(name: string): boolean {
  return Object.values(prefixes).some((prefix) => name.startsWith(prefix));
}

function isUp({ state }: { readonly state: string }): boolean {
  return state === 'up';
}

/** Lists the names that requests may give as `model`. */
export async function listModels({ db, fleet }: Pick<CallCtx, 'db' | 'fleet'>): Promise<Model[]> {
  const names = [...(await listCapabilityNames(db))].filter(isModel).toSorted();
  return names.map((id) => {
    const up = fleet.of(id).instances.filter(isUp);
    const rates = up.map(({ rate_usd }) => rate_usd);
    return {
      id,
      object: 'model',
      created: 0,
      owned_by: 'capstan',
      instances_up: up.length,
      rate_usd: rates.length === 0 ? null : Math.min(...rates),
    };
  });
}

/**
 * The capability that a request means by `model`.
 * @throws AppError `not_found` with the nearest name
 */
async function findModel(
  { db, fleet }: Pick<CallCtx, 'db' | 'fleet'>,
  model: string,
  kind: ModelKind,
): Promise<string> {
  const prefix = prefixes[kind];
  const name = model.startsWith(prefix) ? model : `${prefix}${model}`;
  if (fleet.of(name).instances.length > 0) return name;
  const names = [...(await listCapabilityNames(db))].filter((known) => known.startsWith(prefix));
  if (names.includes(name)) return name;
  const suggestion = createNameSuggester(names)(name);
  const known = names.length === 0 ? 'none is registered' : `registered are ${names.toSorted().join(', ')}`;
  const message = `there is no model ${model}; ${suggestion ?? known}`;
  throw new AppError('not_found', message, {
    errors: [{ pointer: '/model', code: 'model_not_found', message, ...(suggestion && { suggestion }) }],
  });
}

/** @throws AppError `not_found` */
export async function showModel(ctx: Pick<CallCtx, 'db' | 'fleet'>, model: string): Promise<Model> {
  const found = (await listModels(ctx)).find(
    ({ id }) => id === model || id === `${prefixes.chat}${model}` || id === `${prefixes.embeddings}${model}`,
  );
  if (found !== undefined) return found;
  await findModel(ctx, model, 'chat');
  throw new AppError('not_found', `there is no model ${model}`);
}

function headOf({ model }: ChatRequest): ChatHead {
  return { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1_000), model };
}

/** @throws AppError `output_invalid` */
function readResult(output: Json, capability: string): ModelResult {
  const { success, data } = ModelResult.safeParse(output);
  if (success && (data.text ?? data.json ?? data.tool_calls) !== undefined) return data;
  throw new AppError(
    'output_invalid',
    `${capability} answered without text, json or tool_calls, which a chat completion is made of`,
  );
}

interface NamedCall {
  readonly capability: string;
  readonly input: JsonObject;
  readonly onDelta?: ((delta: Json) => void) | undefined;
}

async function callModel(
  ctx: CallCtx,
  { constraints, ...order }: Omit<OpenAiOrder<unknown>, 'request'>,
  { capability, input, onDelta }: NamedCall,
) {
  const request: ExecRequest = { ...constraints, input };
  const call = { ...order, capability, request, onDelta };
  const { answer, isReplayed } = await makeDirectCall(ctx, call);
  if (answer instanceof AppError) throw answer;
  return { output: answer.output, routing: answer.routing, isReplayed };
}

async function makeChatCall(ctx: CallCtx, order: ChatOrder, onDelta?: (delta: Json) => void) {
  const capability = await findModel(ctx, order.request.model, 'chat');
  const call = { capability, input: toModelInput(order.request), onDelta };
  const { output, ...facts } = await callModel(ctx, order, call);
  return { result: readResult(output, capability), ...facts };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function completeChat(ctx: CallCtx, order: ChatOrder): Promise<OpenAiAnswer<ChatCompletion>> {
  const { result, routing, isReplayed } = await makeChatCall(ctx, order);
  const body = toCompletion(headOf(order.request), result, routing.settled_usd ?? 0);
  return { body, routing, isReplayed };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function embedTexts(
  ctx: CallCtx,
  order: OpenAiOrder<EmbeddingsRequest>,
): Promise<OpenAiAnswer<EmbeddingsAnswer>> {
  const { request } = order;
  const capability = await findModel(ctx, request.model, 'embeddings');
  const call = { capability, input: toEmbeddingInput(request) };
  const { output, routing, isReplayed } = await callModel(ctx, order, call);
  const { success, data } = EmbeddingResult.safeParse(output);
  if (!success)
    throw new AppError('output_invalid', `${capability} answered without embeddings: vectors in base64`);
  return { body: toEmbeddings(request, data, routing.settled_usd ?? 0), routing, isReplayed };
}

/** A client that reads slower than the model writes is cut off when this much of the answer waits for it. */
const mostUnreadBytes = 1_048_576;

interface ChatEvents {
  readonly events: Readable;
  /** Resolves with the first event: the answer has begun. */
  readonly begun: Promise<void>;
  hasBegun(): boolean;
  /** Sends a part of the answer; the first one after the opening chunk. */
  send(data: JsonObject): void;
  /** Sends what ends the stream. */
  close(last: readonly (JsonObject | '[DONE]')[]): void;
}

/** @param onLeft the client reads no more */
function createChatEvents(head: ChatHead, onLeft: () => void): ChatEvents {
  const events = new Readable({
    read: () => undefined,
    destroy: (error, done) => {
      onLeft();
      done(error);
    },
  });
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let hasBegun = false;
  const push = (data: JsonObject | '[DONE]'): void => {
    if (events.destroyed) return;
    events.push(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
    if (events.readableLength > mostUnreadBytes) events.destroy();
  };
  return {
    events,
    begun,
    hasBegun: () => hasBegun,
    send: (data) => {
      if (!hasBegun) push(openingChunk(head));
      hasBegun = true;
      begin();
      push(data);
    },
    close: (last) => {
      for (const data of last) push(data);
      if (!events.destroyed) events.push(null);
    },
  };
}

/**
 * @param toError the body of an error that ends the stream
 * @returns server-sent events, once the answer has begun
 * @throws AppError as `completeChat`, until then
 */
export async function streamChat(
  ctx: CallCtx,
  order: ChatOrder,
  toError: (error: AppError) => JsonObject,
): Promise<Readable> {
  const head = headOf(order.request);
  const stop = new CancelSource();
  onCancel(order.signal, () => stop.abort(order.signal.reason));
  const { events, begun, hasBegun, send, close } = createChatEvents(head, () => stop.abort('cancelled'));
  const sendDelta = (delta: Json): void => {
    const chunk = deltaChunk(head, delta);
    if (chunk !== null) send(chunk);
  };
  const includesUsage = order.request.stream_options?.include_usage === true;
  const ended = makeChatCall(ctx, { ...order, idempotency: null, signal: stop }, sendDelta).then(
    ({ result, routing }) => {
      if (!hasBegun()) sendDelta(wholeDelta(result));
      const costUsd = routing.settled_usd ?? 0;
      close([...closingChunks(head, result, { costUsd, includesUsage }), '[DONE]']);
    },
    (error: unknown) => {
      if (!hasBegun()) throw error;
      close([toError(toAppError(error))]);
    },
  );
  await Promise.race([begun, ended]);
  return events;
}
