/**
 * The capability that all sides call: it answers its input at once. It remembers by text when it was first called
 * and how often, until `GET /tally` takes it.
 */
import { createServer } from 'node:http';
import { readClock } from './clock.ts';
import type { Calls } from './tally.ts';

const [name = '', port = ''] = process.argv.slice(2);
const version = '1.0.0';
const schema = {
  type: 'object',
  required: ['n', 'text'],
  properties: { n: { type: 'integer' }, text: { type: 'string' } },
};
const spec = {
  name,
  version,
  description: 'answers its input',
  input: schema,
  output: schema,
  cost_model: { type: 'free', rate_usd: 0 },
};
const calls = new Map<string, Calls>();

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

const server = createServer((request, response) => {
  const at = readClock();
  const answer = (body: string): void => {
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  };
  if (request.url === '/spec') return answer(JSON.stringify(spec));
  if (request.url === '/tally') return answer(takeTally());
  if (request.url === '/health') {
    return answer(JSON.stringify({ status: 'ok', name, version, uptime_ms: process.uptime() * 1_000 }));
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString();
    // Before the answer: whoever has seen the end of a run finds all its calls counted.
    countCall(body, at);
    answer(`{"ok":true,"output":${body}}`);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
