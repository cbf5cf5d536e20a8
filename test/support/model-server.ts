/**
 * A provider of language models with scripted answers: OpenAI-compatible chat completions and Anthropic's messages,
 * streamed or not. It records requests, and whether the caller disconnected before the answer.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  anthropicEvents,
  anthropicMessage,
  chatChunks,
  chatCompletion,
  type WrittenAnswer,
} from './model-wire.ts';

export interface ModelRequest {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Unchanged; typed as far as tests read it. */
  readonly body: {
    readonly model: string;
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
    readonly stream?: boolean;
    readonly [field: string]: unknown;
  };
  /** The body as it was sent. */
  readonly text: string;
  /** The caller disconnected before the answer was complete. */
  isAborted: boolean;
}

export type ModelReply =
  | WrittenAnswer
  /** One vector for each text of `POST /v1/embeddings`. */
  | { readonly vectors: (text: string) => readonly number[]; readonly tokens?: number }
  /** Refuses; a string is sent unchanged. */
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }
  /** Sends 200 with this body. */
  | {
      readonly garbage: string | Buffer;
      readonly contentType?: string;
      readonly headers?: Record<string, string>;
      /** The most bytes that go out at once; default: all. */
      readonly each?: number;
      /** The connection stays open after the last byte. */
      readonly staysOpen?: boolean;
    }
  /** Sends the text, then breaks the connection. */
  | { readonly cut: string }
  /** Never sends anything. */
  | 'hang';

type GarbageReply = Extract<ModelReply, { readonly garbage: string | Buffer }>;

type Script = (request: ModelRequest) => ModelReply | Promise<ModelReply>;

export interface ModelServer {
  /** Base address for both kinds, with `/v1`. */
  readonly url: string;
  /** In the order of arrival. */
  readonly requests: readonly ModelRequest[];
  /** Sets the behaviour from the next request on. */
  answer(script: Script): void;
  close(): Promise<void>;
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(event);
}

async function sendBytes(
  response: ServerResponse,
  { garbage, contentType = 'text/event-stream', headers, each, staysOpen = false }: GarbageReply,
): Promise<void> {
  response.writeHead(200, { 'content-type': contentType, ...headers });
  const bytes = Buffer.from(garbage);
  const size = each ?? bytes.length;
  for (let at = 0; at < bytes.length && !response.destroyed; at += size) {
    const goesOn = response.write(bytes.subarray(at, at + size));
    // Each part is a read of its own at the other end, as a rule.
    await (goesOn ? nextTurn() : once(response, 'drain'));
  }
  if (!staysOpen) response.end();
}

function eventsOf({ path, body }: ModelRequest, answer: WrittenAnswer): readonly string[] {
  return path.endsWith('/messages') ? anthropicEvents(body.model, answer) : chatChunks(body.model, answer);
}

function wholeOf({ path, body }: ModelRequest, answer: WrittenAnswer): object {
  return path.endsWith('/messages')
    ? anthropicMessage(body.model, answer)
    : chatCompletion(body.model, answer);
}

function send(request: ModelRequest, response: ServerResponse, reply: ModelReply): void {
  if (reply === 'hang') return;
  if ('status' in reply) {
    const body = reply.body ?? { error: { message: `as the test asked: ${reply.status}` } };
    sendJson(response, reply.status, body, reply.headers);
  } else if ('vectors' in reply) {
    const data = (request.body.input as string[]).map((text, index) => ({
      index,
      embedding: reply.vectors(text),
    }));
    sendJson(response, 200, {
      data,
      usage: { prompt_tokens: reply.tokens ?? 3, total_tokens: reply.tokens ?? 3 },
    });
  } else if ('garbage' in reply) {
    sendBytes(response, reply).catch(() => response.destroy());
  } else if ('cut' in reply) {
    sendEvents(response, eventsOf(request, { text: reply.cut }).slice(0, 2));
    response.socket?.end();
  } else if (request.body.stream === true) {
    sendEvents(response, eventsOf(request, reply));
    response.end();
  } else {
    sendJson(response, 200, wholeOf(request, reply));
  }
}

function isKnown(request: IncomingMessage): boolean {
  return (
    request.method === 'POST' &&
    /^\/v1\/(chat\/completions|messages|responses|embeddings)(\?|$)/.test(request.url ?? '')
  );
}

export async function startModelServer(script: Script = () => ({ text: 'hello' })): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  let current = script;
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isKnown(incoming)) return sendJson(response, 404, { error: { message: 'no such path' } });
    const sent = await text(incoming);
    const body = JSON.parse(sent) as ModelRequest['body'];
    const request: ModelRequest = {
      path: incoming.url ?? '',
      headers: incoming.headers,
      body,
      text: sent,
      isAborted: false,
    };
    response.once('close', () => {
      request.isAborted = !response.writableFinished;
    });
    requests.push(request);
    send(request, response, await current(request));
  };
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: Error) => response.destroy(error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    answer: (next) => {
      current = next;
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
