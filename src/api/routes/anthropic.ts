/** Anthropic's protocol over the router: programs that speak it call models by changing their address and key. */

import {
  AnthropicModel,
  AnthropicModelList,
  AnthropicModelQuery,
  CountedTokens,
  CountTokensRequest,
  MessagesRequest,
  ModelMessage,
} from '@capstan/core/contracts/anthropic';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import {
  countRequestTokens,
  createMessage,
  listAnthropicModels,
  showAnthropicModel,
  streamMessage,
} from '../../use-cases/calls/anthropic.ts';
import { json } from '../input.ts';
import { requireSmallChat } from '../limits.ts';
import { toAnthropicError } from '../model-errors.ts';
import { type Route, route } from '../route.ts';
import { callErrors } from './calls.ts';
import { answerBody, answerOf, answerStream, ModelHeaders, refuseKeptStream, toOrder } from './openai.ts';

export const anthropicRoutes: readonly Route[] = [
  route('POST /anthropic/v1/messages', {
    operation: 'create_message',
    tag: 'models',
    summary: "Call a model in the form of Anthropic's messages",
    description:
      'The request becomes an ordinary call of the capability `model.NAME`, like a chat completion, with the same headers. With `stream: true` the answer is `text/event-stream`: until its first part the call may fail over to another instance. Errors have the form `{"type": "error", "error": {"type", "message", "code", "param"}}`. A client that disconnects cancels its call.',
    isLong: true,
    scope: 'capability:call',
    checksName: true,
    headers: ModelHeaders,
    body: json(MessagesRequest, 'chat'),
    responses: { 200: { content: 'text/event-stream', schema: ModelMessage } },
    errors: [...callErrors, 'not_found'],
    handle: async (ctx, call) => {
      const { body } = call;
      requireSmallChat({ messages: body.messages, tools: body.tools ?? [] }, ctx.config);
      const order = toOrder(call, body, body.metadata?.user_id);
      if (body.stream !== true) return answerBody(answerOf(call, await createMessage(ctx, order)));
      refuseKeptStream(order);
      return answerStream(call, await streamMessage(ctx, order, toAnthropicError));
    },
  }),
  route('POST /anthropic/v1/messages/count_tokens', {
    operation: 'count_message_tokens',
    tag: 'models',
    summary: "Estimate the tokens of a request in the form of Anthropic's messages",
    description:
      'The estimate is a third of the bytes, and about 1,400 for each image or document. No model is asked, and nothing is charged.',
    scope: 'capability:call',
    checksName: true,
    body: json(CountTokensRequest, 'chat'),
    responses: { 200: CountedTokens },
    errors: ['not_found'],
    result: (ctx, { caller, body, bytes }) =>
      countRequestTokens(ctx, caller, { body: body as JsonObject & typeof body, bytes: bytes.length }),
  }),
  route('GET /anthropic/v1/models', {
    operation: 'list_anthropic_models',
    tag: 'models',
    summary: 'List the models that a message may name, in the form of Anthropic',
    description:
      'A model is a capability `model.NAME`, or an alias of the project for one. A key that may call some names alone sees only these.',
    scope: 'capability:read',
    query: AnthropicModelQuery,
    responses: { 200: AnthropicModelList },
    result: (ctx, { caller, query }) => listAnthropicModels(ctx, caller, query),
  }),
  route('GET /anthropic/v1/models/{model}', {
    operation: 'get_anthropic_model',
    tag: 'models',
    summary: 'Show a model in the form of Anthropic',
    scope: 'capability:read',
    params: z.object({ model: z.string().min(1).max(128) }),
    responses: { 200: AnthropicModel },
    errors: ['not_found'],
    result: (ctx, { caller, params }) => showAnthropicModel(ctx, caller, params.model),
  }),
];
