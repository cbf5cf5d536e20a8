/** A real HTTP server that records the requests of instances and answers as scripted. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Said {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: Record<string, unknown>;
}

export interface FakeRouter {
  readonly url: string;
  readonly said: readonly Said[];
  /** The next answers have this status and these fields. */
  answer(status: number, fields?: object): void;
  /** Answers nothing more until what it returns is called. */
  hold(): () => void;
  close(): void;
}

export async function startFakeRouter(): Promise<FakeRouter> {
  const said: Said[] = [];
  let status = 201;
  let answered: object = {};
  let held = Promise.resolve();
  const server = createServer((request, response) => {
    request
      .setEncoding('utf8')
      .toArray()
      .then(
        async (chunks) => {
          const { method = '', url: path = '', headers } = request;
          said.push({
            method,
            path,
            authorization: headers.authorization,
            body: JSON.parse(chunks.join('')),
          });
          await held;
          response.writeHead(status, { 'content-type': 'application/problem+json' });
          response.end(JSON.stringify({ detail: 'as the test asked', ...answered }));
        },
        () => response.destroy(),
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return {
    url,
    said,
    answer: (next, fields = {}) => {
      status = next;
      answered = fields;
    },
    hold: () => {
      let release: () => void = () => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    close,
  };
}
