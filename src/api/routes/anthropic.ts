/** Anthropic's protocol over the router: programs that speak it call models by changing their address and key. */
import { MessagesRequest, ModelMessage } from '@capstan/core/contracts/anthropic';
import { createMessage, streamMessage } from '../../use-cases/calls/anthropic.ts';
import { json } from '../input.ts';
import { requireSmallChat } from '../limits.ts';
import { toAnthropicError } from '../model-errors.ts';
import { type Route, route } from '../route.ts';
import { callErrors } from './calls.ts';
import { answerOf, answerStream, ModelHeaders, refuseKeptStream, toOrder } from './openai.ts';

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
      if (body.stream !== true) return { status: 200, body: answerOf(call, await createMessage(ctx, order)) };
      refuseKeptStream(order);
      return answerStream(call, await streamMessage(ctx, order, toAnthropicError));
    },
  }),
];
