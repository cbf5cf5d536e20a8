// Whether the process of this container is well: of a server its API, of a worker its metrics where it has a port for
// them. A worker without one is well while it runs.
import { readFileSync } from 'node:fs';

const { PORT = '7400', METRICS_PORT } = process.env;
const words = readFileSync('/proc/1/cmdline', 'utf8').split('\0');
const isServer = words.includes('server');
const url = isServer ? `http://127.0.0.1:${PORT}/livez` : `http://127.0.0.1:${METRICS_PORT}/metrics`;

if (isServer || METRICS_PORT !== undefined) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch((error) => error);
  if (answer.ok !== true) {
    console.error(`${url}: ${answer.status ?? answer.cause?.message ?? answer.message}`);
    process.exit(1);
  }
}
