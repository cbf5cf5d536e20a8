/**
 * Boxes with one model each, as real instances: a call for another model waits for its load first. They count what they
 * are asked to do at once, so that a box that is booked twice is seen.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { json } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

export interface BoxRequest {
  readonly model: string;
  /** Of the work, ms. */
  readonly workMs: number;
  /** Of the load, if one is needed, ms. */
  readonly loadMs: number;
}

export interface Boxes {
  readonly endpoints: readonly string[];
  /** Of all calls so far. */
  readonly seen: { calls: number; cold: number; twice: number; busyMs: number };
  close(): void;
}

/** An address of this machine that no router takes for a local one, so that no tier decides. */
function findAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
}

/** @param capability whose spec declares the affinity, or not */
async function startBox(
  { name, affinity }: { readonly name: string; readonly affinity: string | null },
  seen: Boxes['seen'],
): Promise<Server> {
  const schema = { type: 'object' };
  const spec = {
    name,
    version: '1.0.0',
    description: 'images',
    input: schema,
    output: schema,
    cost_model: { type: 'free', rate_usd: 0 },
    ...(affinity === null ? {} : { affinity }),
  };
  let loaded = '';
  let open = 0;
  const work = async ({ model, workMs, loadMs }: BoxRequest): Promise<object> => {
    const isCold = loaded !== model;
    open += 1;
    seen.calls += 1;
    if (isCold) seen.cold += 1;
    if (open > 1) seen.twice += 1;
    loaded = model;
    const tookMs = workMs + (isCold ? loadMs : 0);
    seen.busyMs += tookMs;
    await pause(tookMs);
    open -= 1;
    return { ok: true, output: { cold: isCold } };
  };
  const server = createServer(async (request, response) => {
    const send = (body: unknown): void => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (request.url === '/spec') return send(spec);
    if (request.url === '/health')
      return send({ status: 'ok', name, version: '1.0.0', uptime_ms: performance.now() });
    return send(await work((await json(request)) as BoxRequest));
  });
  await new Promise<void>((resolve) => server.listen(0, () => resolve()));
  return server;
}

export async function startBoxes(
  count: number,
  capability: { readonly name: string; readonly affinity: string | null },
): Promise<Boxes> {
  const seen = { calls: 0, cold: 0, twice: 0, busyMs: 0 };
  const servers = await Promise.all(Array.from({ length: count }, () => startBox(capability, seen)));
  const address = findAddress();
  return {
    seen,
    endpoints: servers.map((server) => `http://${address}:${(server.address() as AddressInfo).port}`),
    close: () => {
      for (const server of servers) server.close();
    },
  };
}
