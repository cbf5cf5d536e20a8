/**
 * A model that writes as many tokens as its question asks for, at a steady pace, and stops when its caller leaves. It
 * adds up what it would bill: the truth that budgets are compared with.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { ChatRequest } from './trace.ts';

/** USD a token. */
export const prices = { input: 0.000_003, output: 0.000_015 } as const;

export const model = {
  name: 'model.trace',
  version: '1.0.0',
  cost_model: {
    type: 'per_call',
    rate_usd: 10,
    worst_case: `{{ input.inputTokens * ${prices.input} + input.most * ${prices.output} }}`,
    start: `{{ input.inputTokens * ${prices.input} }}`,
    per_token: `{{ ${prices.output} }}`,
  },
} as const;

export function costOf({ inputTokens, outputTokens }: ChatRequest): number {
  return Number((inputTokens * prices.input + outputTokens * prices.output).toFixed(12));
}

interface Writing {
  readonly asked: ChatRequest;
  readonly response: ServerResponse;
  readonly beginsAt: number;
  made: number;
}

const part = '{"delta":{"content":"a "}}\n';
const tickMs = 10;
/** Before the first token, ms. */
const firstMs = 500;

/** Makes the tokens that are due. @returns whether the answer has ended */
function writeOn(writing: Writing, tokensPerMs: number): boolean {
  const { asked, response, beginsAt } = writing;
  const due = Math.min(asked.outputTokens, Math.floor((performance.now() - beginsAt) * tokensPerMs));
  if (due > writing.made) response.write(part.repeat(due - writing.made));
  writing.made = Math.max(writing.made, due);
  if (writing.made < asked.outputTokens) return false;
  const output = { text: 'a '.repeat(writing.made), finish_reason: 'stop', cost_usd: costOf(asked) };
  response.end(`${JSON.stringify({ ok: true, output })}\n`);
  return true;
}

export interface Provider {
  readonly url: string;
  /** How much faster than 50 tokens a second it writes. */
  speed: number;
  /** USD of all calls since the last time that it was asked. */
  takeBill(): number;
  close(): void;
}

const tokensPerMs = 50 / 1_000;

export async function startProvider(): Promise<Provider> {
  const open = new Set<Writing>();
  let billed = 0;
  const end = (writing: Writing): void => {
    if (!open.delete(writing)) return;
    billed += costOf({ ...writing.asked, outputTokens: writing.made });
  };
  const clock = setInterval(() => {
    for (const writing of open) if (writeOn(writing, provider.speed * tokensPerMs)) end(writing);
  }, tickMs);
  const { name, version, cost_model } = model;
  const spec = { name, version, description: 'replays', input: {}, output: {}, cost_model, stops: true };
  const server = createServer(async (request, response) => {
    const json = (body: object): void => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (request.url === '/health') return json({ status: 'ok', name, version, uptime_ms: performance.now() });
    if (request.url === '/spec') return json(spec);
    const asked = JSON.parse((await buffer(request)).toString()) as ChatRequest;
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.flushHeaders();
    const writing = { asked, response, beginsAt: performance.now() + firstMs / provider.speed, made: 0 };
    open.add(writing);
    response.on('close', () => end(writing));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const provider: Provider = {
    speed: 1,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    takeBill: () => {
      const bill = billed;
      billed = 0;
      return bill;
    },
    close: () => {
      clearInterval(clock);
      server.close();
      server.closeAllConnections();
    },
  };
  return provider;
}
