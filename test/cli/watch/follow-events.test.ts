import type { EventType, RunEvent } from '@capstan/core/contracts/event';
import { expect, it } from 'vitest';
import { createApiClient } from '../../../src/cli/client/api-client.ts';
import { ProblemError } from '../../../src/cli/errors.ts';
import { followEvents } from '../../../src/cli/watch/events.ts';
import { serve } from '../support/http-server.ts';

const types: readonly EventType[] = [
  'run.queued',
  'run.started',
  'step.started',
  'step.succeeded',
  'run.succeeded',
];
const log: readonly RunEvent[] = types.map((type, index) => ({
  seq: 10 * (index + 1),
  at: '2026-01-01T00:00:00Z',
  run_id: 'r',
  type,
  data: {},
}));

function write({ seq, type, ...rest }: RunEvent): string {
  return `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify({ seq, type, ...rest })}\n\n`;
}

async function collect(url: string, signal = new AbortController().signal): Promise<number[]> {
  const client = createApiClient({ url, key: undefined, project: undefined });
  const seen: number[] = [];
  for await (const { seq } of followEvents(client, 'r', { signal })) seen.push(seq);
  return seen;
}

it('sees every event once and in order through connections that break and servers that restart', async () => {
  let requests = 0;
  const url = await serve((request, response) => {
    requests += 1;
    if (requests === 2) {
      response.writeHead(503).end();
      return;
    }
    const after = Number(request.headers['last-event-id'] ?? 0);
    // One event too many from before, as a careless server would.
    const due = log.filter(({ seq }) => seq >= after).slice(0, 3);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(
      `event: snapshot\ndata: {"state":"running"}\n\n: alive\n\n${due.map(write).join('')}`,
      () => response.destroy(),
    );
  });
  expect(await collect(url)).toEqual([10, 20, 30, 40, 50]);
});

it('gives up at once when the run is not there', async () => {
  const url = await serve((_, response) =>
    response.writeHead(404).end('{"code":"not_found","detail":"no run r"}'),
  );
  await expect(collect(url)).rejects.toThrow(ProblemError);
});

it('ends quietly when it is aborted in the middle', async () => {
  const stop = new AbortController();
  const url = await serve((_, response) => {
    response
      .writeHead(200)
      .write(log.slice(0, 1).map(write).join(''), () => setImmediate(() => stop.abort()));
  });
  const seen = await collect(url, stop.signal);
  expect(seen.every((seq) => seq === 10)).toBe(true);
});
