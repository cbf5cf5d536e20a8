/** Requests in Anthropic's form: each is an ordinary direct call of a capability `model.…`. */
import { randomUUID } from 'node:crypto';
import type { MessagesRequest, ModelMessage } from '@capstan/core/contracts/anthropic';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { AppError } from '@capstan/core/errors/app-error';
import {
  createMessageWriter,
  type MessageHead,
  toMessage,
  toMessagesInput,
} from '@capstan/core/model-protocols/anthropic';
import { askModel, type StreamedModel, streamModel } from './model-calls.ts';
import { findModel } from './model-names.ts';
import type { ModelCtx, OpenAiAnswer, OpenAiOrder } from './openai.ts';

type MessageOrder = OpenAiOrder<MessagesRequest>;

function headOf({ model }: MessagesRequest): MessageHead {
  return { id: `msg_${randomUUID().replaceAll('-', '')}`, model };
}

/** @throws AppError of a direct call, `not_found`, `output_invalid` */
export async function createMessage(ctx: ModelCtx, order: MessageOrder): Promise<OpenAiAnswer<ModelMessage>> {
  const { request } = order;
  const capability = await findModel(ctx, order.caller, { model: request.model, kind: 'chat' });
  const { result, ...facts } = await askModel(ctx, order, { capability, input: toMessagesInput(request) });
  return { body: toMessage(headOf(request), result, facts.routing.settled_usd ?? 0), ...facts };
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
  const { request } = order;
  const capability = await findModel(ctx, order.caller, { model: request.model, kind: 'chat' });
  const writer = createMessageWriter(headOf(request));
  return streamModel(ctx, order, { capability, input: toMessagesInput(request), writer, toError });
}
