// Health check of the container. It requests /livez of a server, and /metrics of a worker with METRICS_PORT. A worker
// without METRICS_PORT counts as healthy while it runs. The argument `server`, `worker` or an address says what to
// request; without it, the command of the container does.
import { readFileSync } from 'node:fs';

const { HOST, PORT = '7400', METRICS_HOST, METRICS_PORT } = process.env;

function addressOf(host, port) {
  if (host === undefined || host === '0.0.0.0' || host === '::') return `127.0.0.1:${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

const [part = ''] = process.argv.slice(2);
const words = part === '' ? readFileSync('/proc/1/cmdline', 'utf8').split('\0') : [part];
const isServer = words.includes('server');
const url = URL.canParse(part)
  ? part
  : isServer
    ? `http://${addressOf(HOST, PORT)}/livez`
    : `http://${addressOf(METRICS_HOST, METRICS_PORT)}/metrics`;

if (url === part || isServer || METRICS_PORT !== undefined) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch((error) => error);
  if (answer.ok !== true) {
    console.error(`${url}: ${answer.status ?? answer.cause?.message ?? answer.message}`);
    process.exit(1);
  }
}
