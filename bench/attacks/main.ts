/** That one key cannot exhaust a server: `npm run bench -- attacks [--rounds 5 --only WORDS]`. Linux only. */
import { parseArgs } from 'node:util';
import { describeServer } from '../../src/dev/service-processes.ts';
import { attacks, longAttacks, type Target } from '../../test/scenarios/attacks/attacks.ts';
import { calm, freezingAttacks, freezingLivezMs } from '../../test/scenarios/attacks/freezing.ts';
import { largeAnswers } from '../../test/scenarios/attacks/large-answers.ts';
import { collectorEnvironment } from '../../test/scenarios/attacks/process-size.ts';
import { type AttackFigures, isAsLarge, livezMs, playRounds } from '../../test/scenarios/attacks/rounds.ts';
import { startS3Gateway } from '../../test/support/s3-gateway.ts';
import { findS3Program } from '../../test/support/s3-program.ts';
import { startTcpProxy } from '../../test/support/tcp-proxy.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { playSecrets } from './secrets.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, only: { type: 'string', default: '' } },
});
const freezes = [...freezingAttacks, ...largeAnswers];
const all = [...longAttacks, ...attacks, calm, ...freezes];
/** Their names, so that all of them can be asked for. */
const isFreezing = values.only !== '' && freezes.some(({ name }) => name.includes(values.only));
const some = all.filter(({ name }) => name.includes(values.only) || (name === calm.name && isFreezing));
if (some.length === 0) {
  throw new Error(`no attack's name has "${values.only}" in it: ${all.map(({ name }) => name).join(', ')}`);
}

interface Attacked {
  readonly target: Target;
  readonly pid: number;
}

/** An S3 server for the files, where there is one: uploads to a folder pass through no memory of the server. */
async function startBucket(): Promise<NodeJS.ProcessEnv> {
  const program = await findS3Program();
  if (program.path === null) {
    say(`files are stored in a folder: ${program.reason}`);
    return {};
  }
  const gateway = await startS3Gateway(program.path);
  return { ...gateway.keys, AWS_EC2_METADATA_DISABLED: 'true', MEDIA_URL: gateway.mediaUrl('attacks') };
}

async function startTarget(place: Place): Promise<Attacked> {
  const { databaseUrl, apiKey: key } = await startDatabase(place);
  const direct = new URL(databaseUrl);
  const database = await startTcpProxy(direct.host);
  direct.host = database.address;
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const environment = {
    ...createEnvironment(place, { databaseUrl: direct.href, temporalAddress, port }),
    LOG_LEVEL: 'silent',
    RATE_LIMITS: 'on',
    ...(await startBucket()),
    ...collectorEnvironment,
  };
  const url = `http://127.0.0.1:${port}`;
  const spec = describeServer({ dataDir: place.dataDir, environment }, url);
  await place.supervisor.start(spec);
  const pid = place.supervisor.processes().find(({ name }) => name === spec.name)?.pid;
  if (pid === undefined) throw new Error('the server has no process');
  return { target: { url, key, runId: await startRun(url, key), database }, pid };
}

/** It waits for a worker that does not come. */
async function startRun(url: string, key: string): Promise<string> {
  const steps = [{ id: 'a', wait: '1d' }];
  const answer = await fetch(`${url}/v1/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ definition: { pipeline: 'waits', version: '1', steps } }),
  });
  const { run_id } = (await answer.json()) as { run_id?: string };
  if (run_id === undefined) throw new Error(`the run was answered with ${answer.status}`);
  return run_id;
}

/** By which slow bodies may make the process larger while they are held. */
const slowBodiesMib = 128;

function show({ name, longestMs, count, answers, peakMib }: AttackFigures): string {
  const given = [...answers].map(([status, times]) => `${times} × ${status}`).join(', ');
  return `${name.padEnd(34)} /livez at most ${longestMs.toFixed(0).padStart(5)} ms of ${String(count).padStart(4)}   ${peakMib.toFixed(0).padStart(4)} MiB   ${given}`;
}

async function playAttacks(place: Place): Promise<boolean> {
  const { target, pid } = await startTarget(place);
  const { figures, before, after } = await playRounds(target, pid, { rounds: Number(values.rounds), some });
  for (const figure of figures) console.log(show(figure));
  const freezing = new Set(freezes.map(({ name }) => name));
  const longestOf = (wanted: (name: string) => boolean): number =>
    Math.max(0, ...figures.filter(({ name }) => wanted(name)).map((figure) => figure.longestMs));
  const longestMs = longestOf((name) => !freezing.has(name));
  const frozenMs = longestOf((name) => freezing.has(name));
  const isFluent = frozenMs <= freezingLivezMs;
  const isPrompt = longestMs <= livezMs;
  const isSmall = isAsLarge(before, after);
  const slowMib = Math.max(
    0,
    ...figures.filter(({ name }) => name.includes('slow')).map((one) => one.peakMib - before.residentMib),
  );
  const isBounded = slowMib <= slowBodiesMib;
  console.log(
    `slow bodies make the process larger by ${slowMib.toFixed(0)} MiB, <= ${slowBodiesMib}: ${isBounded ? 'pass' : 'FAIL'}`,
  );
  console.log(`\n/livez at most ${longestMs.toFixed(0)} ms, <= ${livezMs} ms: ${isPrompt ? 'pass' : 'FAIL'}`);
  console.log(
    `/livez beside what would freeze at most ${frozenMs.toFixed(0)} ms, <= ${freezingLivezMs} ms (${longestOf((name) => name === calm.name).toFixed(0)} ms beside nothing): ${isFluent ? 'pass' : 'FAIL'}`,
  );
  console.log(
    `resident ${before.residentMib.toFixed(0)} MiB before, ${after.residentMib.toFixed(0)} after; descriptors ${before.descriptors}, ${after.descriptors}: ${isSmall ? 'pass' : 'FAIL'}`,
  );
  return isPrompt && isFluent && isSmall && isBounded;
}

await runBench(playAttacks, ...(values.only === '' ? [playSecrets] : []));
