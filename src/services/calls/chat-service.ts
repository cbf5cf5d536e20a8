/**
 * Chat completions in OpenAI's form: each is an ordinary direct call of a capability `model.…`, with its routing, budget
 * and decision. A stream is answered from the first part on, so until then a call may still fail over to another
 * instance, and its error has a status of its own.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ExecAnswer, ExecRequest } from '../../contracts/decision.ts';
import { type ChatCompletion, type ChatRequest, type Model, ModelResult } from '../../contracts/openai.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import {
  type ChatHead,
  closingChunks,
  deltaChunk,
  openingChunk,
  toCompletion,
  toModelInput,
  wholeDelta,
} from '../../core/chat.ts';
import { createNameSuggester } from '../../core/nearest-name.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import { AppError, toAppError } from '../../errors/app-error.ts';
import { type CallCtx, makeDirectCall } from './call-service.ts';

export interface ChatOrder {
  readonly projectId: string;
  readonly request: ChatRequest;
  /** The constraints of the route, as headers give them. */
  readonly constraints: Omit<ExecRequest, 'input'>;
  readonly idempotency: { readonly key: string; readonly bodySha256: Buffer } | null;
  /** Aborts when the client disconnects; the call is cancelled then. */
  readonly signal: CancelSignal;
}

export interface ChatAnswer {
  readonly completion: ChatCompletion;
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
}

const prefix = 'model.';

function isUp({ state }: { readonly state: string }): boolean {
  return state === 'up';
}

/** Lists the names that requests may give as `model`. */
export async function listModels({ db, fleet }: Pick<CallCtx, 'db' | 'fleet'>): Promise<Model[]> {
  const names = [...(await listCapabilityNames(db))].filter((name) => name.startsWith(prefix)).toSorted();
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
export async function findModel(
  { db, fleet }: Pick<CallCtx, 'db' | 'fleet'>,
  model: string,
): Promise<string> {
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

async function makeChatCall(ctx: CallCtx, order: ChatOrder, onDelta?: (delta: Json) => void) {
  const { projectId, request, constraints, idempotency, signal } = order;
  const capability = await findModel(ctx, request.model);
  const exec: ExecRequest = { ...constraints, input: toModelInput(request) };
  const call = { projectId, capability, request: exec, idempotency, signal, onDelta };
  const { answer, isReplayed } = await makeDirectCall(ctx, call);
  if (answer instanceof AppError) throw answer;
  return { result: readResult(answer.output, capability), routing: answer.routing, isReplayed };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function completeChat(ctx: CallCtx, order: ChatOrder): Promise<ChatAnswer> {
  const { result, routing, isReplayed } = await makeChatCall(ctx, order);
  const completion = toCompletion(headOf(order.request), result, routing.settled_usd ?? 0);
  return { completion, routing, isReplayed };
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
