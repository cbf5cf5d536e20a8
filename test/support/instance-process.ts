/**
 * Instances in a process that may be killed: it writes the start and end of every `/exec` at once, so that the journal
 * survives. It ends with its parent.
 */
import { openSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { FleetMember, FromInstances, JournalEntry, ToInstances } from './instance-messages.ts';

process.on('disconnect', () => process.exit());

const [journalPath = '', members = '[]'] = process.argv.slice(2);
const journal = openSync(journalPath, 'a');
const failing = new Set<number>();

function write(entry: Omit<JournalEntry, 'at'>): void {
  writeSync(journal, `${JSON.stringify({ at: Date.now(), ...entry })}\n`);
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString());
}

async function exec(member: FleetMember, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const call = {
    port: member.port,
    key: String(request.headers['idempotency-key']),
    number: Number(request.headers['x-attempt']),
  };
  write({ ...call, kind: 'begin' });
  let isOver = false;
  const end = (status: number | null): void => {
    if (!isOver) write({ ...call, kind: 'end', status });
    isOver = true;
  };
  response.once('close', () => end(null));
  const input = await readJson(request);
  if (input.hang === true) return;
  const durationMs = member.minMs + Math.random() * (member.maxMs - member.minMs);
  setTimeout(() => {
    if (isOver) return;
    const status = failing.has(member.port) || Math.random() < member.failureShare ? 500 : 200;
    end(status);
    answer(response, status, status === 200 ? { ok: true, output: {} } : { ok: false, error: 'broken' });
  }, durationMs);
}

async function serve(member: FleetMember): Promise<void> {
  const { name, cost_model } = member;
  const version = '1.0.0';
  const spec = { name, version, description: name, input: { type: 'object' }, output: { type: 'object' } };
  const server = createServer((request, response) => {
    switch (request.url) {
      case '/health':
        return answer(response, 200, { status: 'ok', name, version, uptime_ms: process.uptime() * 1_000 });
      case '/spec':
        return answer(response, 200, { ...spec, cost_model });
      default:
        exec(member, request, response).catch(() => response.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(member.port, '127.0.0.1', resolve));
  write({ port: member.port, kind: 'start' });
}

process.on('message', ({ port, fails }: ToInstances) => {
  if (fails) failing.add(port);
  else failing.delete(port);
});
await Promise.all((JSON.parse(members) as FleetMember[]).map(serve));
process.send?.('ready' satisfies FromInstances);
