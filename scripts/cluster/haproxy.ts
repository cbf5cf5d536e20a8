/**
 * HAProxy before the API and before Temporal's frontends. A server that is not ready is left out within a second, and
 * one that is only busy is not: two checks must fail, of two seconds each. What met one that died is tried at another where that cannot happen twice: reads, and requests with an
 * `Idempotency-Key`.
 */
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { ClusterPlace } from './place.ts';
import { nodeAddresses } from './temporal-nodes.ts';

function listServers({ ports, servers }: ClusterPlace): string {
  const own = ports.servers.slice(0, servers);
  return own.map((port, index) => `  server server-${index + 1} 127.0.0.1:${port}`).join('\n');
}

function describe(place: ClusterPlace): string {
  const { api, temporal, frontend } = place.ports;
  return `
global
  maxconn 4096
  # A request is kept until it is answered, so that it can be sent again.
  tune.bufsize 131072
defaults
  timeout connect 2s
  timeout client 1h
  timeout check 2s
  timeout server 1h
  option redispatch 1
frontend api
  mode http
  bind 127.0.0.1:${api}
  default_backend servers
backend servers
  mode http
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
  option http-buffer-request
  retries 3
  retry-on conn-failure empty-response response-timeout 503
  http-request disable-l7-retry unless METH_GET or { req.hdr(idempotency-key) -m found }
  default-server check inter 500ms fastinter 200ms fall 2 rise 1
${listServers(place)}
frontend temporal
  mode tcp
  bind 127.0.0.1:${temporal}
  default_backend frontends
backend frontends
  mode tcp
  balance leastconn
  default-server check inter 500ms fall 1 rise 1 on-marked-down shutdown-sessions
${nodeAddresses.map((address, index) => `  server temporal-${index + 1} ${address}:${frontend}`).join('\n')}
`;
}

function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.unref();
    setTimeout(() => socket.destroy(), 1_000).unref();
  });
}

/** Resolves when it takes connections, whether or not there is anybody behind it yet. */
export async function startHaproxy(place: ClusterPlace, program: string): Promise<void> {
  const file = join(place.folder, 'haproxy.cfg');
  await writeFile(file, describe(place));
  await place.start({
    name: 'haproxy',
    command: program,
    args: ['-db', '-f', file],
    cwd: place.folder,
    env: { PATH: process.env.PATH },
    account: null,
    logFile: join(place.folder, 'logs', 'haproxy.log'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 5_000,
    readyTimeoutMs: 10_000,
    isReady: () => isAnswered(place.ports.api),
  });
}
