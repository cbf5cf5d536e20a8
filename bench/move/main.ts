/**
 * Moves the data folder of a stack with runs to another Postgres and Temporal, and shows that each run continues, once:
 * `npm run bench -- move [--runs 300] [--database-url URL]`. The first `capstan move` is killed while it copies the
 * database, and repeated. A third of the runs has ended, a third waits for a review, and a third for a time. Without a
 * URL the target is a second Postgres of npm.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Review, ReviewDecision } from '@capstan/core/contracts/review';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { type Stack, startStack } from '../../src/dev/stack.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findTemporal } from '../../src/dev/temporal/source.ts';
import { type CapstanClient, createClient } from '../../test/support/capstan.ts';
import { type Instance, startInstance } from '../../test/support/fleet.ts';
import { decide } from '../../test/support/reviews.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '300' }, 'database-url': { type: 'string' } },
});
const ofEach = Math.ceil(Number(values.runs) / 3);
const program = fileURLToPath(new URL('../../bin/capstan.mjs', import.meta.url));
const longestMs = 300_000;
const acceptance: ReviewDecision = { action: 'output', output: {} };

function start(place: Place, name: string, environment: NodeJS.ProcessEnv): Promise<Stack> {
  const dataDir = join(place.dataDir, name);
  const others = { port: 0, ephemeral: false, samples: false, report: () => undefined };
  return startStack({ ...others, dataDir, environment: { ...process.env, ...environment } });
}

function echoed(id: string, ...depends_on: string[]) {
  return { id, capability: 'echo', input: { id }, depends_on };
}

const kinds = [
  [echoed('a')],
  [echoed('a'), { id: 'ask', review: { title: '?' }, depends_on: ['a'] }, echoed('b', 'ask')],
  [echoed('a'), { id: 'pause', wait: '45s', depends_on: ['a'] }, echoed('b', 'pause')],
];

async function countOf(client: CapstanClient, filter: string): Promise<number> {
  const { body } = await client.request<{ count: number }>('GET', `/v1/runs/count?${filter}`);
  return body.count;
}

/** The API lists at most 200 at once. */
async function decideAll(client: CapstanClient): Promise<number> {
  let decided = 0;
  for (;;) {
    const { body } = await client.request<{ items: Review[] }>('GET', '/v1/reviews?state=open&limit=200');
    if (body.items.length === 0) return decided;
    await Promise.all(body.items.map((review) => decide(client, review, acceptance)));
    decided += body.items.length;
  }
}

async function fill(client: CapstanClient, instance: Instance): Promise<void> {
  for (const steps of kinds) await Promise.all(Array.from({ length: ofEach }, () => client.submit(steps)));
  const areDone = async () =>
    instance.execs.length === kinds.length * ofEach && (await countOf(client, 'state=succeeded')) === ofEach;
  await waitFor('the first steps', areDone, longestMs);
}

async function startTarget(place: Place): Promise<NodeJS.ProcessEnv> {
  const dataDir = join(place.dataDir, 'services');
  await mkdir(dataDir, { mode: 0o755 });
  const options = { dataDir, ephemeral: false, cacheDir: place.cacheDir, environment: process.env };
  const { path } = await findTemporal(options, createPartReport(place.report, 'Temporal'));
  const [port, uiPort] = [await place.nextPort(), await place.nextPort()];
  const address = await startTemporal(place.supervisor, { ...options, program: path, port, uiPort });
  const report = createPartReport(place.report, 'Postgres');
  const own = async () => {
    const server = await startPostgres(place.supervisor, { ...options, port: await choosePort([]) }, report);
    return ensureDatabase(server, 'capstan');
  };
  return {
    DATABASE_URL: values['database-url'] ?? (await own()),
    TEMPORAL_ADDRESS: address,
    MEDIA_URL: `file://${join(place.dataDir, 'media')}`,
  };
}

/** @param until kills it at this line @returns its exit code; null: it was killed */
async function move(place: Place, until?: RegExp): Promise<number | null> {
  const [data, file] = [join(place.dataDir, 'laptop'), join(place.dataDir, 'target.env')];
  const began = performance.now();
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  const child = spawn(process.execPath, [program, 'move', '--data', data, '--env-file', file], { stdio });
  createInterface({ input: child.stdout }).on('line', (line) => {
    say(`  ${line}`);
    if (until?.test(line)) child.kill('SIGKILL');
  });
  const [code] = await once(child, 'close');
  say(
    `capstan move: ${code === null ? 'killed' : `exit code ${code}`} after ${((performance.now() - began) / 1_000).toFixed(1)} s`,
  );
  return code;
}

/** @returns whether each run ended well, and no call was made twice */
async function judge(client: CapstanClient, instance: Instance): Promise<boolean> {
  const areEnded = async () => (await countOf(client, 'state=succeeded')) === kinds.length * ofEach;
  await waitFor('all runs', areEnded, longestMs);
  const keys = instance.execs.map(({ headers }) => String(headers['idempotency-key']));
  const [calls, wanted] = [keys.length, 5 * ofEach];
  say(
    `runs succeeded: ${kinds.length * ofEach}; calls: ${calls} of ${wanted}, different ones: ${new Set(keys).size}`,
  );
  return calls === wanted && new Set(keys).size === wanted;
}

await runBench(async (place) => {
  const laptop = await start(place, 'laptop', {});
  let { info } = laptop;
  const client = createClient(() => info.api_url, info.api_key);
  const instance = await startInstance(client, { name: 'echo', max_concurrency: 50 });
  await fill(client, instance);
  await laptop.stop();
  const target = await startTarget(place);
  const lines = Object.entries(target).map(([name, value]) => `${name}="${value}"`);
  await writeFile(join(place.dataDir, 'target.env'), lines.join('\n'));
  const killed = await move(place, /^ {2}project /);
  const moved = await move(place);
  if (killed !== null || moved !== 0) return false;
  const cluster = await start(place, 'cluster', target);
  info = { ...cluster.info, api_key: info.api_key };
  try {
    say(`reviews decided: ${await decideAll(client)}`);
    return await judge(client, instance);
  } finally {
    await cluster.stop();
    await instance.stop();
  }
});
