/**
 * `capstan mcp`: the tools of a key for programs that start a server and speak to it over stdin and stdout. Each request
 * goes to `/mcp` of the API, so both ways offer the same tools. Nothing but messages of the protocol is printed.
 */
import { Readable, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Server, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type ApiClient, toUnreachable } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { parsed, procedure } from '../command.ts';
import { ProblemError, UnreachableError } from '../errors.ts';
import { readUsd } from '../input/arguments.ts';
import { readServerSentEvents } from '../watch/events.ts';

const Answer = z.object({
  result: z.looseObject({}).optional(),
  error: z.object({ code: z.number().int(), message: z.string(), data: z.unknown().optional() }).optional(),
});

const Progress = z.object({
  method: z.literal('notifications/progress'),
  params: z.looseObject({ progressToken: z.union([z.string(), z.number()]), progress: z.number() }),
});

interface Forwarded {
  readonly method: 'tools/list' | 'tools/call';
  readonly params: object | undefined;
  readonly received: ServerContext;
}

interface Remote {
  readonly client: ApiClient;
  readonly ceilingUsd: number | undefined;
}

/** The messages of an answer: one as JSON, or several as events. */
async function* readMessages(response: Response): AsyncGenerator<unknown> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    yield await response.json();
    return;
  }
  for await (const { data } of readServerSentEvents(response.body ?? Readable.from([]), () => undefined))
    yield JSON.parse(data);
}

/** @throws ProblemError, UnreachableError */
async function forward({ client, ceilingUsd }: Remote, { method, params, received }: Forwarded) {
  const { _meta, signal } = received.mcpReq;
  const token = _meta?.progressToken;
  const meta = token === undefined ? {} : { _meta: { progressToken: token } };
  const message = { jsonrpc: '2.0', id: 1, method, params: { ...params, ...meta } };
  const response = await client.open('/mcp', {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(ceilingUsd === undefined ? {} : { 'x-capstan-ceiling-usd': String(ceilingUsd) }),
    },
    body: JSON.stringify(message),
    signal,
  });
  try {
    for await (const said of readMessages(response)) {
      const progress = Progress.safeParse(said);
      if (progress.success) await received.mcpReq.notify(progress.data);
      const answer = Answer.safeParse(said).data;
      if (answer?.error !== undefined || answer?.result !== undefined) return answer;
    }
  } catch (thrown) {
    throw toUnreachable(client.connection.url, thrown);
  }
  throw new UnreachableError(`${client.connection.url} ended its answer without a result`);
}

/** Only a failure to reach the API is an error of the protocol here; the API answers all others. */
function describeFault(thrown: unknown): string {
  if (thrown instanceof ProblemError) return `${thrown.problem.code}: ${thrown.problem.detail}`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

async function createServer(remote: Remote): Promise<Server> {
  const { ProtocolError, ProtocolErrorCode, Server } = await import('@modelcontextprotocol/server');
  const server = new Server(
    { name: 'capstan', title: 'Capstan', version: '1' },
    { capabilities: { tools: {} } },
  );
  const pass = async (method: Forwarded['method'], params: object | undefined, received: ServerContext) => {
    const answer = await forward(remote, { method, params, received }).catch((thrown: unknown) => {
      throw new ProtocolError(ProtocolErrorCode.InternalError, describeFault(thrown));
    });
    const { result, error } = answer;
    if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
    return result ?? {};
  };
  server.setRequestHandler('tools/list', async ({ params }, received) => {
    return (await pass('tools/list', params, received)) as { tools: [] };
  });
  server.setRequestHandler('tools/call', async ({ params }, received) => {
    return (await pass('tools/call', params, received)) as { content: [] };
  });
  return server;
}

async function serveTools({ client, shell }: Session, ceilingUsd: number | undefined): Promise<void> {
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
  const input = Readable.from(shell.stdin);
  const transport = new StdioServerTransport(input, shell.stdout as Writable);
  const handle = serveStdio(() => createServer({ client, ceilingUsd }), { transport });
  const stopListening = shell.onInterrupt(() => input.destroy());
  await finished(input).catch(() => undefined); // the client closed its end, or Ctrl-C
  stopListening();
  await handle.close();
}

export const registerMcpCommand = procedure('mcp', {
  about: 'offer the tools of a key to an agent, over stdin and stdout (Model Context Protocol)',
  example: 'capstan mcp --url https://capstan.example.org --ceiling 0.50',
  options: { '--ceiling <usd>': parsed('the most that one call or run may cost, in US dollars', readUsd) },
  run: (session, { ceiling }) => serveTools(session, ceiling),
});
