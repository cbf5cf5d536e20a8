/**
 * The capabilities that all sides call: each answers its input, at once or after a while. They remember by text when it
 * was first called and how often, until `GET /tally` takes it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type BenchCapability, capabilities, capabilityKeys, costModelOf } from './capabilities.ts';
import { readClock } from './clock.ts';
import type { Calls } from './tally.ts';

const version = '1.0.0';
const schema = {
  type: 'object',
  required: ['n', 'text'],
  properties: { n: { type: 'integer' }, text: { type: 'string' } },
};
const calls = new Map<string, Calls>();

function describe(capability: BenchCapability): string {
  const { name, isDeterministic: deterministic } = capability;
  const description = 'answers its input';
  const cost_model = costModelOf(capability);
  return JSON.stringify({
    name,
    version,
    description,
    input: schema,
    output: schema,
    cost_model,
    deterministic,
  });
}

function countCall(body: string, at: number): void {
  const text = /"text":"([^"]*)"/.exec(body)?.[1] ?? '';
  const { firstAt, count } = calls.get(text) ?? { firstAt: at, count: 0 };
  calls.set(text, { firstAt, count: count + 1 });
}

function takeTally(): string {
  const tally = JSON.stringify(Object.fromEntries(calls));
  calls.clear();
  return tally;
}

function answer(response: ServerResponse, body: string): void {
  const length = Buffer.byteLength(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.end(body);
}

function execute(request: IncomingMessage, response: ServerResponse, waitMs: number): void {
  const at = readClock();
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString();
    // Before the answer: a client that has seen the end of a run finds all its calls counted.
    countCall(body, at);
    const end = (): void => answer(response, `{"ok":true,"output":${body}}`);
    if (waitMs === 0) end();
    else setTimeout(end, waitMs);
  });
}

function serve(capability: BenchCapability, port: number): void {
  const spec = describe(capability);
  const server = createServer((request, response) => {
    if (request.url === '/spec') return answer(response, spec);
    if (request.url === '/tally') return answer(response, takeTally());
    if (request.url !== '/health') return execute(request, response, capability.waitMs);
    const uptime_ms = process.uptime() * 1_000;
    return answer(response, JSON.stringify({ status: 'ok', name: capability.name, version, uptime_ms }));
  });
  server.keepAliveTimeout = 60_000;
  server.listen(port, '127.0.0.1');
}

const ports = process.argv.slice(2).map(Number);
for (const [index, key] of capabilityKeys.entries()) serve(capabilities[key], ports[index] ?? 0);
process.on('SIGTERM', () => process.exit(0));
