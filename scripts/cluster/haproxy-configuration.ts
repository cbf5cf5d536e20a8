/**
 * A server that is not ready is left out within a second, and one that is only busy is not: two checks must fail, of
 * two seconds each. Where none seems ready, all are asked: a late answer is better than none, and a server without its
 * database reports that itself. A request that met a failing server is retried at another where that cannot happen
 * twice: reads, and requests with an `Idempotency-Key` to routes that honour it.
 */
import type { ClusterPlace } from './place.ts';
import { nodeAddresses } from './temporal-nodes.ts';

type Parts = Pick<ClusterPlace, 'ports' | 'servers'>;

function listServers({ ports, servers }: Parts): string {
  const own = ports.servers.slice(0, servers);
  const lines = (name: string, options: string): string[] =>
    own.map((port, index) => `  server ${name}-${index + 1} 127.0.0.1:${port}${options}`);
  const lastResort = '  # Used when no server above is ready.';
  return [...lines('server', ''), lastResort, ...lines('last', ' no-check backup')].join('\n');
}

/** What docs/production.md shows, with the addresses of a cluster and without TLS. */
export function haproxyConfiguration(parts: Parts): string {
  const { api, temporal, frontend } = parts.ports;
  return `
global
  maxconn 4096
  # HAProxy keeps a request for a retry only if it fits into this buffer.
  tune.bufsize 131072
defaults
  timeout connect 2s
  timeout http-request 30s
  # Must be longer than the servers' keep-alive (65 s).
  timeout http-keep-alive 2m
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
  option allbackups
  option httpchk GET /readyz
  http-check expect status 200
  option http-buffer-request
  retries 3
  retry-on conn-failure empty-response response-timeout 503
  # Routes that honour Idempotency-Key.
  acl keyed path_reg ^/(v1/(runs|runs/bulk|runs/bulk/raise|runs/[^/]+/rerun|schedules/[^/]+/trigger|hooks/[^/]+/deliveries/[^/]+/replay|capabilities/[^/]+/exec|reviews/[^/]+/decision)|openai/v1/(chat/completions|embeddings|responses)|anthropic/v1/messages)$
  http-request disable-l7-retry unless METH_GET or keyed { req.hdr(idempotency-key) -m found }
  default-server check inter 500ms fastinter 200ms fall 2 rise 1
${listServers(parts)}
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
