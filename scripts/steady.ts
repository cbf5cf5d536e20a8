/**
 * `npm run test:steady`: runs `npm test` again and again and prints how long each run took, what failed in it and which
 * files are slowest. A test that fails here by the load of the machine is to be mended, not repeated.
 *
 *   npm run test:steady                              two runs on one core, three with a busy loop on each core, five quiet ones
 *   npm run test:steady -- --times 3 --busy 2        three runs beside two busy loops
 *   npm run test:steady -- --times 2 --cores 1       two runs on one core (taskset)
 *   npm run test:steady -- --times 5 --beside FOLDER each followed by a run of another checkout
 *
 * Exit code 1 when a run of this checkout failed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, open, readFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from '../bench/engine/statistics.ts';

interface Condition {
  readonly times: number;
  /** Busy loops beside the suite. */
  readonly busy: number;
  /** Cores that the suite may use; null: all. */
  readonly cores: number | null;
}

/** What is read of the report of vitest. */
interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

interface Run {
  readonly condition: string;
  readonly seconds: number;
  readonly exitCode: number;
  /** Null when the suite ended without one, and for a checkout that does not write it. */
  readonly report: Report | null;
  readonly logFile: string;
}

/** The hardest first: what fails by load fails early. */
const wholePlan: readonly Condition[] = [
  { times: 2, busy: 0, cores: 1 },
  { times: 3, busy: availableParallelism(), cores: null },
  { times: 5, busy: 0, cores: null },
];

function describe({ busy, cores }: Condition): string {
  const words = [busy > 0 ? `${busy} busy loops` : 'quiet', ...(cores === null ? [] : [`${cores} core`])];
  return words.join(', ');
}

/** Ends with this process, however that ends. */
function startBusyLoop(): ChildProcess {
  return spawn(process.execPath, ['-e', 'const parent = process.ppid; while (process.ppid === parent);']);
}

function startSuite(folder: string, cores: number | null, options: object): ChildProcess {
  const pin = cores === null ? [] : ['taskset', '--cpu-list', `0-${cores - 1}`];
  const [command = 'npm', ...words] = [...pin, 'npm', 'test'];
  return spawn(command, words, { cwd: folder, ...options });
}

async function runOnce(folder: string, condition: Condition, name: string): Promise<Run> {
  const place = await mkdtemp(join(tmpdir(), 'capstan-steady-'));
  const [reportFile, logFile] = [join(place, 'report.json'), join(place, 'log')];
  const log = await open(logFile, 'w');
  const loops = Array.from({ length: condition.busy }, startBusyLoop);
  const startedAt = performance.now();
  const env = { ...process.env, TEST_REPORT: reportFile };
  const suite = startSuite(folder, condition.cores, { env, stdio: ['ignore', log.fd, log.fd] });
  const exitCode = await new Promise<number>((resolve, reject) => {
    suite.once('error', reject);
    suite.once('close', (code) => resolve(code ?? 1));
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  for (const loop of loops) loop.kill('SIGKILL');
  await log.close();
  const report = await readFile(reportFile, 'utf8').then(JSON.parse, () => null);
  return { condition: name, seconds, exitCode, report, logFile };
}

function findFailures({ testResults }: Report): string[] {
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed').map((test) => test.fullName);
    const names = failed.length === 0 && status === 'failed' ? ['(the file)'] : failed;
    return names.map((test) => `${relative(process.cwd(), name)}: ${test}`);
  });
}

function describeTime(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
}

function describeRun({ condition, seconds, exitCode, report, logFile }: Run): string {
  const tests = report === null ? '' : `${report.numPassedTests} passed, ${report.numFailedTests} failed`;
  const verdict = exitCode === 0 ? 'green' : `FAILED, exit code ${exitCode}, output in ${logFile}`;
  const failures = report === null ? [] : findFailures(report).map((line) => `\n    ${line}`);
  return `${condition.padEnd(34)} ${describeTime(seconds).padStart(12)}  ${tests.padEnd(24)} ${verdict}${failures.join('')}`;
}

function describeMedians(runs: readonly Run[]): string[] {
  const names = [...new Set(runs.map(({ condition }) => condition))];
  return names.map((name) => {
    const seconds = runs.filter(({ condition }) => condition === name).map((run) => run.seconds);
    return `${name.padEnd(34)} ${describeTime(median(seconds)).padStart(12)}  median of ${seconds.length}`;
  });
}

function listSlowest(runs: readonly Run[], count: number): string[] {
  const secondsOf = new Map<string, number[]>();
  for (const { name, startTime, endTime } of runs.flatMap(({ report }) => report?.testResults ?? [])) {
    const file = relative(process.cwd(), name);
    secondsOf.set(file, [...(secondsOf.get(file) ?? []), (endTime - startTime) / 1_000]);
  }
  return [...secondsOf]
    .map(([file, seconds]) => ({ file, seconds: median(seconds) }))
    .toSorted((one, other) => other.seconds - one.seconds)
    .slice(0, count)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${file}`);
}

async function runAll(plan: readonly Condition[], beside: string | undefined): Promise<Run[]> {
  const runs: Run[] = [];
  const play = async (folder: string, condition: Condition, name: string): Promise<void> => {
    const run = await runOnce(folder, condition, name);
    console.log(describeRun(run));
    runs.push(run);
  };
  for (const condition of plan) {
    for (let time = 0; time < condition.times; time++) {
      await play(process.cwd(), condition, describe(condition));
      if (beside !== undefined) await play(beside, condition, `${describe(condition)}, ${beside}`);
    }
  }
  return runs;
}

function readCount(name: string, text: string, least: number): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= least) return count;
  console.error(`--${name} ${text}: expected a whole number of at least ${least}`);
  process.exit(2);
}

const { values } = parseArgs({
  options: {
    times: { type: 'string' },
    busy: { type: 'string', default: '0' },
    cores: { type: 'string' },
    beside: { type: 'string' },
  },
});
const plan =
  values.times === undefined
    ? wholePlan
    : [
        {
          times: readCount('times', values.times, 1),
          busy: readCount('busy', values.busy, 0),
          cores: values.cores === undefined ? null : readCount('cores', values.cores, 1),
        },
      ];
const runs = await runAll(plan, values.beside);
const own = runs.filter(({ report }) => report !== null);
console.log(['', ...describeMedians(runs), '', 'slowest files, median', ...listSlowest(own, 15)].join('\n'));
process.exit(
  runs.some(({ exitCode, condition }) => exitCode !== 0 && !condition.endsWith(values.beside ?? '\0'))
    ? 1
    : 0,
);
