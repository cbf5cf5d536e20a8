/** An instance in this process, which no fault of the cluster touches, and which fails on command. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { answer } from '../../test/support/fleet.ts';
import type { NetworkNamespace } from '../../test/support/network-namespace.ts';

export interface Call {
  readonly port: number;
  /** As instances see it: the same for every attempt. */
  readonly key: string;
  readonly number: number;
  readonly input: JsonObject;
}

/** A call as it is carried out. */
export interface OpenCall extends Call {
  readonly answer: (status: number, body: object) => void;
  /** Closes the connection without an answer. */
  readonly cut: () => void;
}

export interface Member {
  readonly port: number;
  readonly endpoint: string;
  readonly namespace: NetworkNamespace | undefined;
  /** As a process that is killed: its connections are reset, and new ones are refused. */
  crash(): Promise<void>;
  /** New connections are refused, and what is open stays open without a word. */
  closePort(): void;
}

export interface MemberOptions {
  readonly spec: { readonly name: string; readonly version: string };
  readonly take: (call: OpenCall) => void;
  /** The caller has hung up before there was an answer. */
  readonly hungUp: (call: Call) => void;
  /** Where it listens. Default: on the loopback interface. */
  readonly namespace?: NetworkNamespace | undefined;
}

async function readJson(request: IncomingMessage): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** The journal begins here: with the request, not with what became of it. */
async function takeCall(
  port: number,
  { take, hungUp }: MemberOptions,
  [request, response]: readonly [IncomingMessage, ServerResponse],
): Promise<void> {
  const { headers } = request;
  const call = {
    port,
    key: String(headers['idempotency-key']),
    number: Number(headers['x-attempt']),
    input: await readJson(request),
  };
  response.once('close', () => {
    if (!response.writableFinished) hungUp(call);
  });
  take({
    ...call,
    answer: (status, body) => void (response.destroyed || answer(response, status, body)),
    cut: () => void request.socket.destroy(),
  });
}

export async function startMember(options: MemberOptions): Promise<Member> {
  const { spec, namespace } = options;
  const listener = await namespace?.listen();
  const server = createServer((request, response) => {
    const { name, version } = spec;
    const uptime_ms = process.uptime() * 1_000;
    if (request.url === '/health') return answer(response, 200, { status: 'ok', name, version, uptime_ms });
    if (request.url === '/spec') return answer(response, 200, spec);
    takeCall(port, options, [request, response]).catch(() => response.destroy());
  });
  server.listen(listener ?? { port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  return {
    port,
    endpoint: `http://${address}:${port}`,
    namespace,
    crash: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    closePort: () => void server.close(),
  };
}
