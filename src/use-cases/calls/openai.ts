/**
 * Requests in OpenAI's form: each is an ordinary direct call of a capability, `model.…` for a chat completion and
 * `embed.…` for embeddings.
 */
import { randomUUID } from 'node:crypto';
import type { ExecAnswer } from '@capstan/core/contracts/decision';
import {
  type ChatCompletion,
  type ChatRequest,
  EmbeddingResult,
  type EmbeddingsAnswer,
  type EmbeddingsRequest,
  type ModelResult,
} from '@capstan/core/contracts/openai';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { type JsonText, toJsonText } from '@capstan/core/json/text';
import {
  type ChatHead,
  createChatWriter,
  toCompletion,
  toEmbeddingInput,
} from '@capstan/core/model-protocols/openai';
import { translateChat } from '@capstan/core/model-protocols/openai-request';
import { type ClientRequest, type PreparedCall, prepareCall, requireStorable } from './client-protocol.ts';
import type { CallCtx } from './direct-calls.ts';
import { writeEmbeddings } from './embeddings.ts';
import { askModel, type CallTerms, callModel, type StreamedModel, streamModel } from './model-calls.ts';
import { findModel, type NameCtx } from './model-names.ts';

export interface OpenAiOrder<Request> extends CallTerms {
  readonly request: Request;
  readonly client: ClientRequest;
}

type ChatOrder = OpenAiOrder<ChatRequest>;
export type ModelCtx = CallCtx & NameCtx;

export interface OpenAiAnswer<Body> {
  readonly body: Body;
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
  /** Fields of the request that the model did not get. */
  readonly dropped: readonly string[];
}

/** The body that a provider wrote, or ours. */
export type ProtocolBody<Body> = Body | JsonText<Body>;

function headOf({ model }: ChatRequest): ChatHead {
  return { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1_000), model };
}

async function prepareChat(ctx: ModelCtx, order: ChatOrder): Promise<PreparedCall> {
  const { request } = order;
  const capability = await findModel(ctx, order.caller, { model: request.model, kind: 'chat' });
  const translation = translateChat(request);
  return prepareCall(ctx, order, {
    capability,
    protocol: 'openai.chat',
    body: request as JsonObject,
    translation,
  });
}

/**
 * Asks a model in the protocol of a client.
 * @param write the body of a result @throws AppError of a direct call, `output_invalid`
 */
export async function answerInProtocol<Body>(
  ctx: ModelCtx,
  { terms, call }: { readonly terms: CallTerms; readonly call: PreparedCall },
  write: (result: ModelResult, costUsd: number) => Body,
): Promise<OpenAiAnswer<ProtocolBody<Body>>> {
  const { answer, ...facts } = await askModel(ctx, terms, call);
  if (answer.kind === 'result') {
    const body = write(answer.result, facts.routing.settled_usd ?? 0);
    return { body, dropped: call.dropped(), ...facts };
  }
  if (answer.response === undefined)
    throw new AppError('output_invalid', `${call.capability} answered without a response`);
  return { body: toJsonText<Body>(answer.response), dropped: [], ...facts };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid`, `request_invalid` */
export async function completeChat(
  ctx: ModelCtx,
  order: ChatOrder,
): Promise<OpenAiAnswer<ProtocolBody<ChatCompletion>>> {
  const call = await prepareChat(ctx, order);
  return answerInProtocol(ctx, { terms: order, call }, (result, costUsd) =>
    toCompletion(headOf(order.request), result, costUsd),
  );
}

/**
 * @param toError the body of an error that ends the stream
 * @returns once the answer has begun
 * @throws AppError as `completeChat`, until then
 */
export async function streamChat(
  ctx: ModelCtx,
  order: ChatOrder,
  toError: (error: AppError) => JsonObject,
): Promise<StreamedModel> {
  const { request } = order;
  const call = await prepareChat(ctx, order);
  const includesUsage = request.stream_options?.include_usage === true;
  const writer = createChatWriter(headOf(request), { includesUsage, choices: request.n ?? 1 });
  return streamModel(ctx, order, { call, writer, toError });
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function embedTexts(
  ctx: ModelCtx,
  order: OpenAiOrder<EmbeddingsRequest>,
): Promise<OpenAiAnswer<JsonText<EmbeddingsAnswer>>> {
  const { request } = order;
  const { model } = request;
  requireStorable(order.client);
  const capability = await findModel(ctx, order.caller, { model, kind: 'embeddings' });
  const call = { capability, input: toEmbeddingInput(request) };
  const { output, routing, isReplayed } = await callModel(ctx, order, call);
  const { success, data } = EmbeddingResult.safeParse(output);
  const body = success ? await writeEmbeddings(request, data, routing.settled_usd ?? 0) : null;
  if (body === null)
    throw new AppError('output_invalid', `${capability} answered without embeddings: vectors in base64`);
  return { body, routing, isReplayed, dropped: [] };
}
