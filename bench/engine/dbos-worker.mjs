/**
 * What one would write with DBOS alone: an HTTP server that runs workflows in its own process, a recorded step per
 * call. No TypeScript: the types exist only once the rivals are installed.
 */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { Agent } from 'undici';
import { createBareActivities } from './bare-activities.ts';

const [endpoints, port, systemDatabaseUrl, poolSize] = process.argv.slice(2);
const agent = new Agent({ connections: 512, pipelining: 1 });
const activities = createBareActivities(agent, JSON.parse(endpoints));

const run = DBOS.registerWorkflow(
  async ({ kind, steps, capability }, text) => {
    const callCapability = capability === 'slow' ? activities.callSlowCapability : activities.callCapability;
    const call = (step, n) => DBOS.runStep(() => callCapability({ n, text }), { name: `s${step}` });
    if (kind === 'parallel') return Promise.all(Array.from({ length: steps }, (_, n) => call(n, n)));
    let last = await call(0, 0);
    for (let step = 1; step < steps; step++) last = await call(step, last.n);
    return last;
  },
  { name: 'run' },
);

async function serve(request) {
  if (request.method !== 'POST') return null;
  const { id, shape, text } = await json(request);
  const handle = await DBOS.startWorkflow(run, { workflowID: id })(shape, text);
  return handle.getResult();
}

DBOS.setConfig({
  name: 'bench',
  systemDatabaseUrl,
  systemDatabasePoolSize: Number(poolSize),
  logLevel: 'warn',
});
await DBOS.launch();
const server = createServer((request, response) => {
  const answer = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  serve(request).then(
    (body) => answer(200, body),
    (error) => answer(500, { error: String(error) }),
  );
});
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => {
  server.closeAllConnections();
  server.close();
  void DBOS.shutdown().finally(() => process.exit(0));
});
