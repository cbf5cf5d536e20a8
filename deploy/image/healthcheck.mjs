// Health check of the container. It requests /livez of a server, and /metrics of a worker with METRICS_PORT. A worker
// without METRICS_PORT counts as healthy while it runs.
import { readFileSync } from 'node:fs';

const { HOST, PORT = '7400', METRICS_HOST, METRICS_PORT } = process.env;

function addressOf(host, port) {
  if (host === undefined || host === '0.0.0.0' || host === '::') return `127.0.0.1:${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

const words = readFileSync('/proc/1/cmdline', 'utf8').split('\0');
const isServer = words.includes('server');
const url = isServer
  ? `http://${addressOf(HOST, PORT)}/livez`
  : `http://${addressOf(METRICS_HOST, METRICS_PORT)}/metrics`;

if (isServer || METRICS_PORT !== undefined) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch((error) => error);
  if (answer.ok !== true) {
    console.error(`${url}: ${answer.status ?? answer.cause?.message ?? answer.message}`);
    process.exit(1);
  }
}
