/**
 * What telemetry costs a routed call: `npm run bench -- telemetry [--rounds N]`. Prints microseconds of processor time
 * per call of the exec route without telemetry, with metrics, with spans, and with both, in rounds that take turns.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from '../engine/statistics.ts';
import { measure } from '../router/load.ts';
import { pin } from '../router/stack.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' } } });

interface Side {
  readonly name: string;
  readonly child: ChildProcess;
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly processorUs: number[];
}

interface Used extends NodeJS.CpuUsage {
  readonly rss: number;
  readonly startMs: number;
}

let told = 0;
/** Accepts telemetry, as a collector would. */
const sink = createServer((request, response) => {
  request.on('data', (part: Buffer) => {
    told += part.length;
  });
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
});
await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
const collector = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`;

async function start(
  name: string,
  telemetry: Readonly<Record<string, string>>,
  headers: Side['headers'] = {},
): Promise<Side> {
  const file = fileURLToPath(new URL('server.ts', import.meta.url));
  const env = { ...process.env, ...telemetry };
  const child = fork(file, { env, execArgv: ['--import', 'tsx'] });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  if (child.pid !== undefined) pin(child.pid, 0);
  return { name, child, origin: `http://127.0.0.1:${port}`, headers, processorUs: [] };
}

async function usedBy({ child }: Side): Promise<Used> {
  child.send('usage');
  const [used] = (await once(child, 'message')) as [Used];
  return used;
}

/** @returns processor time per call */
async function run(side: Side, durationMs: number): Promise<number> {
  const before = await usedBy(side);
  const { calls } = await measure(
    {
      name: side.name,
      origin: side.origin,
      path: '/v1/capabilities/bench-free/exec',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bench', ...side.headers },
      body: JSON.stringify({ input: { text: 'answer '.repeat(30) } }),
      part: null,
    },
    32,
    durationMs,
  );
  const after = await usedBy(side);
  return (after.user + after.system - before.user - before.system) / calls;
}

pin(process.pid, 1);
const metrics = { METRICS_PORT: '0' };
// The queue of spans is large, so that none is dropped and each is paid for.
const spans = { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_BSP_MAX_QUEUE_SIZE: '200000' };
const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const sides = [
  await start('off', {}),
  await start('off, traceparent goes through', {}, { traceparent }),
  await start('metrics', metrics),
  await start('spans', spans),
  await start('metrics and spans', { ...metrics, ...spans }),
];
for (const side of sides) await run(side, 3_000);
for (let round = 0; round < Number(values.rounds); round++)
  for (const side of sides) side.processorUs.push(await run(side, 1_500));
const least = median(sides[0]?.processorUs ?? []);
for (const side of sides) {
  const { rss, startMs } = await usedBy(side);
  const us = median(side.processorUs);
  const more = `${us < least ? '' : '+'}${(us - least).toFixed(1)} µs`;
  const start = `${(rss / 1_048_576).toFixed(0)} MiB, ready after ${startMs.toFixed(0)} ms`;
  console.log(
    `${side.name.padEnd(32)} ${us.toFixed(1).padStart(6)} µs a call  ${more.padStart(9)}  ${start}`,
  );
}
console.log(`${(told / 1_048_576).toFixed(1)} MiB of spans were told`);
for (const { child } of sides) child.disconnect();
sink.close();
sink.closeAllConnections();
