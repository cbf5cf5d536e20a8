/**
 * An HTTP proxy whose every byte is a piece of its own, both ways: a program behind it reads one byte at a time,
 * however the operating system joins them, because each is a chunk of the protocol.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Transform } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';

export interface ByteSplitter {
  readonly url: string;
  close(): Promise<void>;
}

/** One chunk of the protocol for each piece of so many bytes. */
function frame(bytes: Uint8Array, size: number): Buffer {
  const head = `${size.toString(16)}\r\n`;
  const whole = Math.floor(bytes.length / size);
  const rest = bytes.length - whole * size;
  const framed = Buffer.allocUnsafe(whole * (head.length + size + 2));
  let at = 0;
  for (let piece = 0; piece < whole; piece += 1) {
    at += framed.write(head, at, 'latin1');
    framed.set(bytes.subarray(piece * size, (piece + 1) * size), at);
    at += size;
    framed[at] = 13;
    framed[at + 1] = 10;
    at += 2;
  }
  if (rest === 0) return framed;
  const end = Buffer.concat([
    Buffer.from(`${rest.toString(16)}\r\n`),
    bytes.subarray(whole * size),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([framed, end]);
}

function without(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  const { 'content-length': _, 'transfer-encoding': __, connection: ___, ...others } = headers;
  return others;
}

/** @param target address of the server, without a path */
export async function startByteSplitter(target: string, size = 1): Promise<ByteSplitter> {
  const pass = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(incoming);
    const headers = {
      ...without(incoming.headers),
      ...(body.length === 0 ? {} : { 'transfer-encoding': 'chunked' }),
    };
    const sent = request(`${target}${incoming.url}`, { method: incoming.method, headers, agent: false });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    if (body.length === 0) sent.end();
    else {
      sent.flushHeaders();
      const [socket] = sent.socket === null ? await once(sent, 'socket') : [sent.socket];
      if (socket.connecting) await once(socket, 'connect');
      // Past the request, which would make a write of each piece.
      socket.write(Buffer.concat([frame(body, size), Buffer.from('0\r\n\r\n')]));
    }
    const [answer] = await answered;
    response.writeHead(answer.statusCode ?? 502, {
      ...without(answer.headers),
      'transfer-encoding': 'chunked',
      connection: 'close',
    });
    response.flushHeaders();
    const framing = new Transform({
      transform: (bytes: Buffer, _encoding, done) => done(null, frame(bytes, size)),
      flush: (done) => done(null, Buffer.from('0\r\n\r\n')),
    });
    const { socket } = response;
    if (socket !== null) await pipeline(answer, framing, socket);
  };
  const server = createServer((incoming, response) => {
    pass(incoming, response).catch((error: Error) => response.destroy(error));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
