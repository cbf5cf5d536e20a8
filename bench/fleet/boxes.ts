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
  readonly number: number;
  readonly model: string;
  /** Of the work, ms. */
  readonly workMs: number;
  /** Of the load, if one is needed, ms. */
  readonly loadMs: number;
}

interface SeenCall {
  readonly isCold: boolean;
  /** When its work began, after the load, on the monotonic clock. */
  readonly beganAtMs: number;
  /** Of the box, for its load and its work. */
  readonly busyMs: number;
  /** The box, from 0 on. */
  readonly box: number;
}

interface Seen {
  /** Calls that found another one on their box. */
  twice: number;
  /** By the number of the request. */
  readonly calls: Map<number, SeenCall>;
}

export interface BoxCapability {
  readonly name: string;
  readonly affinity: string | null;
}

export interface Boxes {
  /** By box, one for each capability. */
  readonly endpoints: readonly (readonly string[])[];
  readonly seen: Seen;
  close(): void;
}

/** An address of this machine that no router takes for a local one, so that no tier decides. */
function findAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.1';
}

class Box {
  readonly #seen: Seen;
  readonly #number: number;
  #loaded = '';
  #open = 0;

  constructor(seen: Seen, number: number) {
    this.#seen = seen;
    this.#number = number;
  }

  async work({ number, model, workMs, loadMs }: BoxRequest): Promise<object> {
    const seen = this.#seen;
    const isCold = this.#loaded !== model;
    this.#open += 1;
    if (this.#open > 1) seen.twice += 1;
    this.#loaded = model;
    const takenAtMs = performance.now();
    if (isCold) await pause(loadMs);
    const beganAtMs = performance.now();
    await pause(workMs);
    seen.calls.set(number, { isCold, beganAtMs, busyMs: performance.now() - takenAtMs, box: this.#number });
    this.#open -= 1;
    return { ok: true, output: { cold: isCold } };
  }
}

const schema = { type: 'object' };

async function serve(box: Box, { name, affinity }: BoxCapability): Promise<Server> {
  const spec = {
    name,
    version: '1.0.0',
    description: 'images',
    input: schema,
    output: schema,
    cost_model: { type: 'free', rate_usd: 0 },
    ...(affinity === null ? {} : { affinity }),
  };
  const server = createServer(async (request, response) => {
    const send = (body: unknown): void => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (request.url === '/spec') return send(spec);
    const uptime_ms = performance.now();
    if (request.url === '/health') return send({ status: 'ok', name, version: '1.0.0', uptime_ms });
    return send(await box.work((await json(request)) as BoxRequest));
  });
  await new Promise<void>((resolve) => server.listen(0, () => resolve()));
  return server;
}

/** @param capabilities of each box */
export async function startBoxes(count: number, capabilities: readonly BoxCapability[]): Promise<Boxes> {
  const seen: Seen = { twice: 0, calls: new Map() };
  const boxes = await Promise.all(
    Array.from({ length: count }, (_, at) => {
      const box = new Box(seen, at);
      return Promise.all(capabilities.map((capability) => serve(box, capability)));
    }),
  );
  const address = findAddress();
  const endpointOf = (server: Server): string =>
    `http://${address}:${(server.address() as AddressInfo).port}`;
  return {
    seen,
    endpoints: boxes.map((servers) => servers.map(endpointOf)),
    close: () => {
      for (const server of boxes.flat()) server.close();
    },
  };
}
