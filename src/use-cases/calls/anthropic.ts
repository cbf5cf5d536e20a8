/** Requests in Anthropic's form: each is an ordinary direct call of a capability `model.…`. */
import { randomUUID } from 'node:crypto';
import type {
  AnthropicModel,
  AnthropicModelList,
  AnthropicModelQuery,
  CountedTokens,
  MessagesRequest,
  ModelMessage,
} from '@capstan/core/contracts/anthropic';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { AppError } from '@capstan/core/errors/app-error';
import { createMessageWriter, type MessageHead, toMessage } from '@capstan/core/model-protocols/anthropic';
import {
  countedPart,
  estimateTokens,
  translateMessages,
} from '@capstan/core/model-protocols/anthropic-request';
import type { z } from 'zod';
import { type Caller, toCallingKey } from '../access/caller.ts';
import { countMostTokens, type PreparedCall, prepareCall } from './client-protocol.ts';
import { type StreamedModel, streamModel } from './model-calls.ts';
import { findModel, listModels, type NameCtx, showModel } from './model-names.ts';
import {
  answerInProtocol,
  type ModelCtx,
  type OpenAiAnswer,
  type OpenAiOrder,
  type ProtocolBody,
} from './openai.ts';

type MessageOrder = OpenAiOrder<MessagesRequest>;

/** About how many tokens the input of a request counts: no model is asked. */
function estimateInput(request: JsonObject, bytes: number): number {
  return estimateTokens(countMostTokens(countedPart(request), bytes));
}

function headOf({ model }: MessagesRequest): MessageHead {
  return { id: `msg_${randomUUID().replaceAll('-', '')}`, model };
}

async function prepareMessage(ctx: ModelCtx, order: MessageOrder): Promise<PreparedCall> {
  const { request } = order;
  const capability = await findModel(ctx, order.caller, { model: request.model, kind: 'chat' });
  const translation = translateMessages(request);
  const body = request as JsonObject;
  return prepareCall(ctx, order, { capability, protocol: 'anthropic.messages', body, translation });
}

/** @throws AppError of a direct call, `not_found`, `output_invalid`, `request_invalid` */
export async function createMessage(
  ctx: ModelCtx,
  order: MessageOrder,
): Promise<OpenAiAnswer<ProtocolBody<ModelMessage>>> {
  const call = await prepareMessage(ctx, order);
  return answerInProtocol(ctx, { terms: order, call }, (result, costUsd) =>
    toMessage(headOf(order.request), result, costUsd),
  );
}

/**
 * @param toError the body of an error that ends the stream
 * @returns once the answer has begun
 * @throws AppError as `createMessage`, until then
 */
export async function streamMessage(
  ctx: ModelCtx,
  order: MessageOrder,
  toError: (error: AppError) => JsonObject,
): Promise<StreamedModel> {
  const { request, client } = order;
  const call = await prepareMessage(ctx, order);
  const writer = createMessageWriter(headOf(request), () =>
    estimateInput(request as JsonObject, client.bytes.length),
  );
  return streamModel(ctx, order, { call, writer, toError });
}

/**
 * Estimates the tokens of a request by its bytes: no model is asked.
 * @throws AppError `not_found` for an unknown model
 */
export async function countRequestTokens(
  ctx: NameCtx,
  caller: Caller,
  { body, bytes }: { readonly body: JsonObject & { readonly model: string }; readonly bytes: number },
): Promise<z.output<typeof CountedTokens>> {
  await findModel(ctx, toCallingKey(caller, {}), { model: body.model, kind: 'chat' });
  return { input_tokens: estimateInput(body, bytes) };
}

function toAnthropicModel({ id }: { readonly id: string }): AnthropicModel {
  const created_at = '1970-01-01T00:00:00Z';
  return { type: 'model', id, display_name: id, created_at, max_input_tokens: null, max_tokens: null };
}

/** Lists the models that messages may name, in pages. */
export async function listAnthropicModels(
  ctx: NameCtx,
  caller: Caller,
  { limit, after_id, before_id }: z.output<typeof AnthropicModelQuery>,
): Promise<z.output<typeof AnthropicModelList>> {
  const all = (await listModels(ctx, caller)).filter(({ capability }) => capability.startsWith('model.'));
  const end = before_id === undefined ? all.length : all.findIndex(({ id }) => id === before_id);
  const from = after_id === undefined ? 0 : all.findIndex(({ id }) => id === after_id) + 1;
  const isBackwards = before_id !== undefined && after_id === undefined;
  const found = all.slice(from, Math.max(from, end));
  const page = isBackwards ? found.slice(-limit) : found.slice(0, limit);
  return {
    data: page.map(toAnthropicModel),
    has_more: page.length < found.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

/** @throws AppError `not_found` */
export async function showAnthropicModel(
  ctx: NameCtx,
  caller: Caller,
  model: string,
): Promise<AnthropicModel> {
  return toAnthropicModel(await showModel(ctx, caller, model));
}
