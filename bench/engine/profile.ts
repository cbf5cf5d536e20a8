/**
 * What the processes of Capstan and of the floor do under load, by thread, package and function, and what Postgres
 * executes: `npm run bench -- engine --profile`. The profiles stay, to be opened in the developer tools of a browser.
 */
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Place, say } from '../shared/run-bench.ts';
import { bareWorkers } from './bare-side.ts';
import { connectSides } from './connect-sides.ts';
import { type Period, readSteadyUs, readThread } from './cpu-profile.ts';
import { type Bench, runUnderLoad, warmUp } from './measure.ts';
import { readThreadTimes } from './processor-time.ts';
import type { Effort } from './shapes.ts';
import type { Side, SideName } from './side.ts';
import { type Stack, startStack } from './stack.ts';
import { watchStatements } from './statement-times.ts';

const profiled = { capstan: ['server', 'worker'], floor: [bareWorkers.floor] } as const;
type ProfiledSide = keyof typeof profiled;
const names: readonly SideName[] = ['capstan', 'bare', 'floor'];
const mostRows = 25;

interface ProcessLoad {
  readonly name: string;
  readonly pid: number;
  readonly runs: number;
  readonly period: Period;
  /** Milliseconds by thread. */
  readonly threads: ReadonlyMap<string, number>;
}

type Cells = ReadonlyMap<string, number>;

/** The largest first. */
function rows(title: string, times: Cells, runs: number): string[] {
  const all = [...times.values()].reduce((sum, ms) => sum + ms, 0);
  const shown = [...times].sort(([, a], [, b]) => b - a).slice(0, mostRows);
  const row = (name: string, ms: number): string => `${(ms / runs).toFixed(3).padStart(9)}  ${name}`;
  return ['', row(title, all), ...shown.filter(([, ms]) => ms > 0).map(([name, ms]) => row(name, ms))];
}

async function loadSide(bench: Bench, side: Side, pids: ReadonlyMap<string, number>): Promise<ProcessLoad[]> {
  const before = new Map([...pids].map(([name, pid]) => [name, readThreadTimes(pid)]));
  const from = readSteadyUs();
  await runUnderLoad(bench, side);
  const period = { from, to: readSteadyUs() };
  const spent = (name: string, after: Cells): Cells =>
    new Map([...after].map(([thread, ms]) => [thread, ms - (before.get(name)?.get(thread) ?? 0)]));
  return [...pids].map(([name, pid]) => {
    const threads = spent(name, readThreadTimes(pid));
    return { name, pid, runs: bench.effort.loadRuns, period, threads };
  });
}

function tell(dir: string, { name, pid, runs, period, threads }: ProcessLoad): void {
  console.log(rows(`${name}, ms of processor time a run, by thread`, threads, runs).join('\n'));
  const files = readdirSync(dir).filter((file) => file.split('.')[3] === String(pid));
  for (const file of files) {
    const { byPlace, byFunction } = readThread(join(dir, file), period);
    const title = `${name}, thread ${Number(file.split('.')[4])}`;
    console.log(rows(`${title}, by package`, byPlace, runs).join('\n'));
    console.log(rows(`${title}, by function`, byFunction, runs).join('\n'));
  }
}

async function loadAll(
  place: Place,
  { bench, stack }: { readonly bench: Bench; readonly stack: Stack },
): Promise<readonly ProcessLoad[]> {
  const loads: ProcessLoad[] = [];
  await warmUp(bench);
  for (const side of bench.sides.filter(({ name }) => name in profiled)) {
    say(`${side.name} under load`);
    const parts = profiled[side.name as ProfiledSide];
    const pids = new Map(parts.map((name) => [name, bench.processes.get(name) ?? 0] as const));
    loads.push(...(await loadSide(bench, side, pids)));
    if (side.name !== 'capstan') continue;
    const logFile = join(place.dataDir, 'logs', 'postgres.log');
    const statements = await watchStatements(stack.capstan.databaseUrl, logFile, async () => {
      await runUnderLoad(bench, side);
    });
    const { loadRuns } = bench.effort;
    const named = [...statements].map(
      ([text, { count, ms }]) => [`${(count / loadRuns).toFixed(2).padStart(6)} ×  ${text}`, ms] as const,
    );
    console.log(
      rows('ms a run of all statements in Postgres; how many a run', new Map(named), loadRuns).join('\n'),
    );
  }
  return loads;
}

export async function profile(place: Place, effort: Effort): Promise<boolean> {
  const dir = mkdtempSync(join(tmpdir(), 'capstan-profile-'));
  const isProfiled = new Set<string>(Object.values(profiled).flat());
  const stack = await startStack(place, names, {
    adapt: (spec) =>
      isProfiled.has(spec.name)
        ? { ...spec, args: ['--cpu-prof', `--cpu-prof-dir=${dir}`, ...spec.args] }
        : spec,
  });
  const { sides, close } = await connectSides(stack, names);
  const bench = { sides, effort, endpoint: stack.endpoints.echo, processes: stack.processes() };
  const loads = await loadAll(place, { bench, stack }).finally(close);
  // Their last act is to write what they have seen.
  await place.supervisor.stop();
  for (const load of loads) tell(dir, load);
  console.log(`\nprofiles: ${dir}`);
  return true;
}
