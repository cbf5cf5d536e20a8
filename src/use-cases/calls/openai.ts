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
} from '@capstan/core/contracts/openai';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import type { JsonText } from '@capstan/core/json/text';
import {
  type ChatHead,
  createChatWriter,
  toCompletion,
  toEmbeddingInput,
  toModelInput,
} from '@capstan/core/model-protocols/openai';
import type { CallCtx } from './direct-calls.ts';
import { writeEmbeddings } from './embeddings.ts';
import { askModel, type CallTerms, callModel, type StreamedModel, streamModel } from './model-calls.ts';
import { findModel, type NameCtx } from './model-names.ts';

export interface OpenAiOrder<Request> extends CallTerms {
  readonly request: Request;
}

type ChatOrder = OpenAiOrder<ChatRequest>;
export type ModelCtx = CallCtx & NameCtx;

export interface OpenAiAnswer<Body> {
  readonly body: Body;
  readonly routing: ExecAnswer['routing'];
  readonly isReplayed: boolean;
}

function headOf({ model }: ChatRequest): ChatHead {
  return { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1_000), model };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function completeChat(ctx: ModelCtx, order: ChatOrder): Promise<OpenAiAnswer<ChatCompletion>> {
  const { request } = order;
  const capability = await findModel(ctx, order.caller, { model: request.model, kind: 'chat' });
  const { result, ...facts } = await askModel(ctx, order, { capability, input: toModelInput(request) });
  return { body: toCompletion(headOf(request), result, facts.routing.settled_usd ?? 0), ...facts };
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
  const capability = await findModel(ctx, order.caller, { model: request.model, kind: 'chat' });
  const includesUsage = request.stream_options?.include_usage === true;
  const writer = createChatWriter(headOf(request), { includesUsage, choices: request.n ?? 1 });
  return streamModel(ctx, order, { capability, input: toModelInput(request), writer, toError });
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function embedTexts(
  ctx: ModelCtx,
  order: OpenAiOrder<EmbeddingsRequest>,
): Promise<OpenAiAnswer<JsonText<EmbeddingsAnswer>>> {
  const { request } = order;
  const { model } = request;
  const capability = await findModel(ctx, order.caller, { model, kind: 'embeddings' });
  const call = { capability, input: toEmbeddingInput(request) };
  const { output, routing, isReplayed } = await callModel(ctx, order, call);
  const { success, data } = EmbeddingResult.safeParse(output);
  const body = success ? await writeEmbeddings(request, data, routing.settled_usd ?? 0) : null;
  if (body === null)
    throw new AppError('output_invalid', `${capability} answered without embeddings: vectors in base64`);
  return { body, routing, isReplayed };
}
