/**
 * What the HTTP pipeline costs a call, alone: `npm run bench -- http [--beside <folder of another checkout>]`. Prints
 * microseconds of processor time per call of the exec route, in rounds that take turns.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measure } from '../router/load.ts';
import { pin } from '../router/stack.ts';

const { values } = parseArgs({
  options: { beside: { type: 'string' }, rounds: { type: 'string', default: '9' } },
});

interface Side {
  readonly name: string;
  readonly child: ChildProcess;
  readonly origin: string;
  readonly processorUs: number[];
}

async function start(name: string, folder: string[]): Promise<Side> {
  const child = fork(fileURLToPath(new URL('server.mjs', import.meta.url)), folder, { execArgv: [] });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  if (child.pid !== undefined) pin(child.pid, 0);
  return { name, child, origin: `http://127.0.0.1:${port}`, processorUs: [] };
}

async function usedUs({ child }: Side): Promise<number> {
  child.send('usage');
  const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage];
  return user + system;
}

/** @returns processor time per call */
async function run(side: Side, durationMs: number): Promise<number> {
  const before = await usedUs(side);
  const { calls } = await measure(
    {
      name: side.name,
      origin: side.origin,
      path: '/v1/capabilities/bench-free/exec',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
      body: JSON.stringify({ input: { text: 'answer '.repeat(30) } }),
      part: null,
    },
    32,
    durationMs,
  );
  return ((await usedUs(side)) - before) / calls;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

pin(process.pid, 1);
const sides = [
  await start('node:http alone', []),
  await start('this checkout', ['.']),
  ...(values.beside === undefined ? [] : [await start('beside', [values.beside])]),
];
for (const side of sides) await run(side, 3_000);
for (let round = 0; round < Number(values.rounds); round++)
  for (const side of sides) side.processorUs.push(await run(side, 1_500));
for (const { name, processorUs } of sides) {
  const each = processorUs.map((us) => us.toFixed(1)).join(' ');
  console.log(`${name.padEnd(16)} ${median(processorUs).toFixed(1)} µs a call (${each})`);
}
for (const { child } of sides) child.disconnect();
