/**
 * What one would write with Restate's SDK alone: a durable action per step. No TypeScript: its types exist only once
 * the rivals are installed.
 */
import { createServer } from 'node:http2';
import { createEndpointHandler, RestatePromise, service } from '@restatedev/restate-sdk';
import { Agent } from 'undici';
import { createBareActivities } from './bare-activities.ts';

const [endpoints, port] = process.argv.slice(2);
const agent = new Agent({ connections: 512, pipelining: 1 });
const activities = createBareActivities(agent, JSON.parse(endpoints));

async function run(context, { shape: { kind, steps, capability }, text }) {
  const callCapability = capability === 'slow' ? activities.callSlowCapability : activities.callCapability;
  const call = (step, n) => context.run(`s${step}`, () => callCapability({ n, text }));
  if (kind === 'parallel') return RestatePromise.all(Array.from({ length: steps }, (_, n) => call(n, n)));
  let last = await call(0, 0);
  for (let step = 1; step < steps; step++) last = await call(step, last.n);
  return last;
}

// The SDK needs it; Node has it from 22 on.
Promise.withResolvers ??= function withResolvers() {
  const resolvers = {};
  resolvers.promise = new this((resolve, reject) => Object.assign(resolvers, { resolve, reject }));
  return resolvers;
};

const handlers = { run };
const server = createServer(createEndpointHandler({ services: [service({ name: 'bench', handlers })] }));
server.listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
