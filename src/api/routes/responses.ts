/** OpenAI's responses over the router, for programs that no longer speak chat completions. */
import { ModelResponse, ResponseDeleted, ResponsesRequest } from '@capstan/core/contracts/responses';
import { z } from 'zod';
import {
  cancelResponse,
  createResponse,
  deleteResponse,
  showResponse,
  streamResponse,
} from '../../use-cases/calls/responses.ts';
import { json } from '../input.ts';
import { requireSmallChat } from '../limits.ts';
import { toOpenAiError } from '../model-errors.ts';
import { type Route, route } from '../route.ts';
import { callErrors } from './calls.ts';
import { answerBody, answerOf, answerStream, ModelHeaders, refuseKeptStream, toOrder } from './openai.ts';

const ResponsePath = z.object({ id: z.string().min(1).max(256) });

export const responseRoutes: readonly Route[] = [
  route('POST /openai/v1/responses', {
    operation: 'create_response',
    tag: 'models',
    summary: "Call a model in the form of OpenAI's responses",
    description:
      'The request becomes an ordinary call of the capability `model.NAME`, like a chat completion, with the same headers and errors. Unless `store` is false, the response is kept for 30 days, and `previous_response_id` of a later request continues its conversation. With `stream: true` the answer is `text/event-stream`. A client that disconnects cancels its call.',
    isLong: true,
    scope: 'capability:call',
    checksName: true,
    headers: ModelHeaders,
    body: json(ResponsesRequest, 'chat'),
    responses: { 200: { content: 'text/event-stream', schema: ModelResponse } },
    errors: [...callErrors, 'not_found'],
    handle: async (ctx, call) => {
      const { body } = call;
      const items = typeof body.input === 'string' ? [body.input] : (body.input ?? []);
      requireSmallChat({ messages: items, tools: body.tools ?? [] }, ctx.config);
      const order = toOrder(call, body, body.user);
      if (body.stream !== true) return answerBody(answerOf(call, await createResponse(ctx, order)));
      refuseKeptStream(order);
      return answerStream(call, await streamResponse(ctx, order, toOpenAiError));
    },
  }),
  route('GET /openai/v1/responses/{id}', {
    operation: 'get_response',
    tag: 'models',
    summary: 'Show a stored response',
    scope: 'capability:call',
    checksName: true,
    params: ResponsePath,
    responses: { 200: ModelResponse },
    errors: ['not_found'],
    result: (ctx, { caller, params }) => showResponse(ctx, caller.project_id, params.id),
  }),
  route('DELETE /openai/v1/responses/{id}', {
    operation: 'delete_response',
    tag: 'models',
    summary: 'Delete a stored response with its conversation',
    scope: 'capability:call',
    checksName: true,
    params: ResponsePath,
    responses: { 200: ResponseDeleted },
    errors: ['not_found'],
    result: (ctx, { caller, params }) => deleteResponse(ctx, caller.project_id, params.id),
  }),
  route('POST /openai/v1/responses/{id}/cancel', {
    operation: 'cancel_response',
    tag: 'models',
    summary: 'Refuse to cancel a response, because stored responses have ended',
    description: 'A client cancels a running response by closing its connection.',
    scope: 'capability:call',
    checksName: true,
    params: ResponsePath,
    responses: { 200: ModelResponse },
    errors: ['not_found', 'state_conflict'],
    result: (ctx, { caller, params }) => cancelResponse(ctx, caller.project_id, params.id),
  }),
];
