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
  ModelResult,
} from '../../contracts/openai.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
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
import { AppError, toAppError } from '../../errors/app-error.ts';
import type { Idempotency } from '../idempotency.ts';
import { type CallCtx, type CallingKey, makeDirectCall } from './call-service.ts';
import { findModel, type NameCtx } from './model-names.ts';

export interface OpenAiOrder<Request> {
  readonly caller: CallingKey;
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
type ModelCtx = CallCtx & NameCtx;

export interface OpenAiAnswer<Body> {
  readonly body: Body;
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
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

async function makeChatCall(ctx: ModelCtx, order: ChatOrder, onDelta?: (delta: Json) => void) {
  const { model } = order.request;
  const capability = await findModel(ctx, order.caller, { model, kind: 'chat' });
  const call = { capability, input: toModelInput(order.request), onDelta };
  const { output, ...facts } = await callModel(ctx, order, call);
  return { result: readResult(output, capability), ...facts };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function completeChat(ctx: ModelCtx, order: ChatOrder): Promise<OpenAiAnswer<ChatCompletion>> {
  const { result, routing, isReplayed } = await makeChatCall(ctx, order);
  const body = toCompletion(headOf(order.request), result, routing.settled_usd ?? 0);
  return { body, routing, isReplayed };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function embedTexts(
  ctx: ModelCtx,
  order: OpenAiOrder<EmbeddingsRequest>,
): Promise<OpenAiAnswer<EmbeddingsAnswer>> {
  const { request } = order;
  const { model } = request;
  const capability = await findModel(ctx, order.caller, { model, kind: 'embeddings' });
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
  ctx: ModelCtx,
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
