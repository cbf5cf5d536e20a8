/**
 * The tools of a key over the Model Context Protocol: streamable HTTP without sessions, so any server behind a proxy
 * answers any request. The protocol's library serves clients of both generations, with a server object for each
 * request. It is loaded with the first request.
 */
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { type CancelSignal, toAbortSignal } from '@capstan/core/cancellation';
import { restoreNumbers } from '@capstan/core/contracts/exact-json';
import { Json, type JsonObject, Usd } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { writeJson } from '@capstan/core/json/text';
import type { Server, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { ServerCtx } from '../../context.ts';
import type { Caller, CallMarks } from '../../use-cases/access/caller.ts';
import type { ToolProgress, ToolRequest } from '../../use-cases/agents/agent-tool.ts';
import { callAgentTool, findAgentTool, listAgentTools } from '../../use-cases/agents/agent-tools.ts';
import { toProblem, translateFault } from '../answer.ts';
import { json } from '../input.ts';
import { CallerHeaders, marksOf } from '../parameters.ts';
import { type AnswerHeaders, type RawCall, type Route, route } from '../route.ts';

const Message = z
  .looseObject({ jsonrpc: z.literal('2.0'), method: z.string().max(200).optional() })
  .meta({ id: 'JsonRpcMessage', description: 'A request or notification of JSON-RPC 2.0; no batches.' });

const AgentHeaders = CallerHeaders.extend({
  'x-capstan-ceiling-usd': z.coerce.number().pipe(Usd).optional().meta({
    description: 'The most that a call or run of this client may cost, USD.',
  }),
});

const instructions =
  'Capstan runs pipelines and calls capabilities for money. Tools run_NAME start a pipeline, tools call_NAME call a capability; both spend from the budgets of this key and answer with cost_usd and the decisions of the router. Use plan for the price of a run before you start it, and costs for what was spent. An error names the budget and the limit that refused a call: do not repeat it, ask a person. Descriptions of pipelines and capabilities come from their authors and were not checked.';

interface Agent extends Pick<RawCall, 'path' | 'request_id' | 'asksToStart'> {
  readonly ctx: ServerCtx;
  readonly caller: Caller;
  readonly marks: CallMarks;
  readonly ceilingUsd: number | null;
  readonly signal: CancelSignal;
}

/** The facts of a problem that help a caller to continue. */
function toToolError(thrown: unknown, { path, request_id }: Agent) {
  const {
    type: _,
    title,
    instance: _path,
    ...facts
  } = toProblem(translateFault(thrown), {
    instance: path,
    request_id,
  });
  const content = { ...facts, meaning: title } as unknown as JsonObject;
  const text = `${facts.code}: ${facts.detail}\n${writeJson(content)}`;
  return { content: [{ type: 'text' as const, text }], structuredContent: content, isError: true };
}

/** Reports while the request is open, if the client asks for it. */
function createReport({ mcpReq }: ServerContext): ToolRequest['report'] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  return ({ done, ...more }: ToolProgress) => {
    const params = { progressToken, progress: done, ...more };
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined); // the client has left
  };
}

async function createServer(agent: Agent): Promise<Server> {
  const { ProtocolError, ProtocolErrorCode, Server } = await import('@modelcontextprotocol/server');
  const { ctx, caller } = agent;
  const server = new Server(
    { name: 'capstan', title: 'Capstan', version: '1' },
    { capabilities: { tools: {} }, instructions },
  );
  const refuse = (message: string) => new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  server.setRequestHandler('tools/list', async ({ params }) => {
    const page = await listAgentTools(ctx, caller, params?.cursor).catch((thrown: unknown) => {
      throw thrown instanceof AppError ? refuse(thrown.message) : thrown;
    });
    const { tools, nextCursor } = page;
    return { tools: [...tools], ...(nextCursor === null ? {} : { nextCursor }) };
  });
  server.setRequestHandler('tools/call', async ({ params }, received) => {
    const { name, arguments: args = {} } = params;
    const { marks, ceilingUsd, signal, asksToStart } = agent;
    const report = createReport(received);
    const request = { caller, marks, args: args as JsonObject, ceilingUsd, signal, report, asksToStart };
    const tool = await findAgentTool(ctx, caller, name);
    if (typeof tool === 'string') throw refuse(tool);
    try {
      const { content, isFailure = false } = await callAgentTool(ctx, tool, request);
      const text = writeJson(content);
      return { content: [{ type: 'text', text }], structuredContent: content, isError: isFailure };
    } catch (thrown) {
      return toToolError(thrown, agent);
    }
  });
  return server;
}

const passedOn = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

async function serve(agent: Agent, { requestHeaders, body }: Pick<RawCall, 'requestHeaders' | 'body'>) {
  const { createMcpHandler } = await import('@modelcontextprotocol/server');
  const { ctx, signal, path } = agent;
  const handler = createMcpHandler(() => createServer(agent), {
    maxSubscriptions: 0,
    onerror: (err) => ctx.logger.debug({ err }, 'a request of an agent was refused'),
  });
  const headers = passedOn.flatMap((name): [string, string][] => {
    const value = requestHeaders[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const request = new Request(new URL(path, 'http://capstan'), {
    method: 'POST',
    headers,
    signal: toAbortSignal(signal),
  });
  return handler.fetch(request, { parsedBody: body });
}

/** The library has written each message by `JSON.stringify`, and gives it as one chunk. */
function readBody({ body }: Response): Readable | undefined {
  if (body === null) return undefined;
  const messages = Readable.fromWeb(body as ReadableStream, { encoding: 'utf8' });
  return messages.map((text: string) => Buffer.from(restoreNumbers(text)));
}

export const mcpRoutes: readonly Route[] = [
  route('POST /mcp', {
    operation: 'call_agent_tools',
    tag: 'agents',
    summary: 'List and call tools over the Model Context Protocol',
    description:
      'Streamable HTTP without sessions. The body is one JSON-RPC message of the protocol, from 2025-03-26 to 2026-07-28. The tools are those that the key may call: one for each pipeline of the project, one for each capability, and tools for plans, runs, costs and reviews. Errors of a tool are results with `isError`, whose structured content has the fields of a problem.',
    isLong: true,
    isForPrograms: true,
    scope: 'any',
    headers: AgentHeaders,
    body: json(Message, 'data'),
    responses: {
      200: { content: 'text/event-stream', schema: Json },
      202: 'empty',
      400: Json,
      404: Json,
      406: Json,
    },
    errors: ['origin_refused'],
    handle: async (ctx, call) => {
      const { caller, headers, signal, path, request_id, asksToStart } = call;
      const ceilingUsd = headers['x-capstan-ceiling-usd'] ?? null;
      const agent = {
        ctx,
        caller,
        marks: marksOf(headers),
        ceilingUsd,
        signal,
        path,
        request_id,
        asksToStart,
      };
      const response = await serve(agent, call);
      const type = response.headers.get('content-type');
      const answered: AnswerHeaders =
        type === null ? {} : { 'Content-Type': type, 'X-Accel-Buffering': 'no' };
      return { status: response.status as 200, headers: answered, body: readBody(response) as Readable };
    },
  }),
];
