/** Answers `GET /metrics` on a port of its own: whoever may scrape need not reach the API, and nobody who reaches it may. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MetricsServer {
  /** Where Prometheus scrapes. */
  readonly url: string;
  close(): Promise<void>;
}

export interface MetricsPage {
  readonly contentType: string;
  text(): Promise<string>;
}

function open(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new Error(`METRICS_PORT: ${host}:${port} cannot be opened (${cause.code})`, { cause })),
    );
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** @throws Error that names METRICS_PORT when the port cannot be opened */
export async function serveMetrics(
  page: MetricsPage,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics' || request.method !== 'GET') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('there is GET /metrics\n');
      return;
    }
    page.text().then(
      (text) => response.writeHead(200, { 'content-type': page.contentType }).end(text),
      () => response.writeHead(500, { 'content-type': 'text/plain' }).end('the metrics cannot be read\n'),
    );
  });
  const { port: opened } = await open(server, host, port);
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${name}:${opened}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
