/** OpenAI's protocol over the router: programs that speak it call models by changing their address and key. */
import { z } from 'zod';
import type { ExecRequest } from '../../contracts/decision.ts';
import { ChatCompletion, ChatHeaders, ChatRequest, Model, ModelList } from '../../contracts/openai.ts';
import { refuseField } from '../../errors/app-error.ts';
import { completeChat, findModel, listModels, streamChat } from '../../services/calls/chat-service.ts';
import type { ServerCtx } from '../../services/context.ts';
import { json } from '../input.ts';
import { toOpenAiError } from '../openai-error.ts';
import { IdempotencyKey } from '../parameters.ts';
import { type Route, route } from '../route.ts';
import { callErrors, sha256 } from './calls.ts';

export function openAiRoutes(ctx: ServerCtx): Route[] {
  return [chatCompletions(ctx), ...modelRoutes(ctx)];
}

const Headers = ChatHeaders.extend({
  'idempotency-key': IdempotencyKey.meta({
    description: 'For 24 hours, a repeated request with this key gets the first answer. Not with `stream`.',
  }),
});

function chatCompletions(ctx: ServerCtx): Route {
  return route({
    operation: 'create_chat_completion',
    method: 'POST',
    path: '/openai/v1/chat/completions',
    tag: 'models',
    summary: "Call a model in the form of OpenAI's chat completions",
    description:
      'The request becomes an ordinary call of the capability `model.NAME`, with routing, budget and decision. `X-Capstan-Decision` and `X-Capstan-Cost-Usd` of the answer name the decision and the cost. With `stream: true` the answer is `text/event-stream`: until its first part the call may fail over to another instance, and `stream_options.include_usage` adds a chunk with the cost. Errors have the form `{"error": {"message", "type", "param", "code"}}`. A client that disconnects cancels its call.',
    isLong: true,
    auth: 'key',
    scope: 'capability:call',
    headers: Headers,
    body: json(ChatRequest, 'chat'),
    responses: { 200: { content: 'text/event-stream', schema: ChatCompletion } },
    errors: [...callErrors, 'not_found'],
    handle: async ({ caller, headers, body, bytes, signal, setHeader }) => {
      const key = headers['idempotency-key'];
      const order = {
        projectId: caller.project_id,
        request: body,
        constraints: toConstraints(headers),
        idempotency: key === undefined ? null : { key, bodySha256: sha256(bytes) },
        signal,
      };
      if (body.stream === true) {
        if (key !== undefined)
          throw refuseField('/headers/idempotency-key', 'an Idempotency-Key cannot be kept for a stream');
        const events = await streamChat(ctx, order, toOpenAiError);
        return { status: 200, headers: streamHeaders, body: events };
      }
      const { completion, routing, isReplayed } = await completeChat(ctx, order);
      setHeader('X-Capstan-Decision', routing.decision_id);
      setHeader('X-Capstan-Cost-Usd', String(routing.settled_usd ?? 0));
      if (isReplayed) setHeader('Idempotent-Replayed', 'true');
      return { status: 200, body: completion };
    },
  });
}

const streamHeaders = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

/** OpenAI's clients wait ten minutes for an answer. */
const chatTimeoutMs = 600_000;

function toConstraints({
  'x-capstan-ceiling-usd': ceiling,
  'x-capstan-priority': priority = 'interactive',
  'x-capstan-tags': tags = [],
}: ChatHeaders): Omit<ExecRequest, 'input'> {
  const limit = ceiling === undefined ? {} : { budget_ceiling_usd: ceiling };
  return { priority, tags, timeout_ms: chatTimeoutMs, ...limit };
}

const ModelPath = z.object({ model: z.string().min(1).max(128) });

function modelRoutes(ctx: ServerCtx): Route[] {
  return [
    route({
      operation: 'list_models',
      method: 'GET',
      path: '/openai/v1/models',
      tag: 'models',
      summary: 'List the models that a chat completion may name',
      description: 'A model is a capability `model.NAME`. `NAME` alone is accepted too.',
      auth: 'key',
      scope: 'capability:read',
      responses: { 200: ModelList },
      handle: async () => ({ status: 200, body: { object: 'list', data: await listModels(ctx) } }),
    }),
    route({
      operation: 'get_model',
      method: 'GET',
      path: '/openai/v1/models/{model}',
      tag: 'models',
      summary: 'Show a model',
      auth: 'key',
      scope: 'capability:read',
      params: ModelPath,
      responses: { 200: Model },
      errors: ['not_found'],
      handle: async ({ params }) => {
        const name = await findModel(ctx, params.model);
        const found = (await listModels(ctx)).find(({ id }) => id === name);
        return { status: 200, body: found as Model };
      },
    }),
  ];
}
