/**
 * Makes one fault after the other in a copy of the checkout and runs the tests that must notice, over one Postgres and
 * one Temporal for all of them. All those tests must pass before, so that a failure means the fault.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import pg from 'pg';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { createSupervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { findMemoryDisk } from '../../test/support/memory-disk.ts';
import { type Fault, faults } from './faults.ts';
import { temporalVariable } from './faults-setup.ts';

export interface PlayedFault extends Pick<Fault, 'name' | 'file'> {
  /** The test that has noticed; null = none has. */
  readonly by: string | null;
  /** Why there is no result. */
  readonly trouble: string | null;
}

interface Servers {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
}

interface Stage extends Servers {
  readonly copy: string;
}

interface Outcome {
  /** Tests, by what they claim or by an error on the way to it. */
  readonly failed: readonly string[];
  /** What was not compiled, migrated or set up, so that no test of it was run. */
  readonly broken: readonly string[];
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

const left = new Set(['node_modules', '.git', 'dist', 'docs']);

function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'capstan-faults-'));
  cpSync('.', copy, { recursive: true, filter: (from) => !left.has(from) });
  symlinkSync(resolve('node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Of the tests before, and of their schema. */
async function dropDatabases(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ datname: string }>(
    `select datname from pg_database where datname like 'test\\_%' or datname like 'capstan\\_template%'`,
  );
  for (const { datname } of rows) await client.query(`drop database if exists ${datname} with (force)`);
  await client.end();
}

function readReport({ testResults }: Report): Outcome {
  const outcome = { failed: [] as string[], broken: [] as string[] };
  for (const { name, status, message, assertionResults } of testResults) {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    for (const { fullName } of failed) outcome.failed.push(`${basename(name)}: ${fullName}`);
    if (status === 'failed' && failed.length === 0)
      outcome.broken.push(`${basename(name)}: ${message.split('\n')[0]}`);
  }
  return outcome;
}

function environmentOf(copy: string, { databaseUrl, temporalAddress }: Servers): Record<string, string> {
  const TMPDIR = join(copy, 'scratch');
  mkdirSync(TMPDIR, { recursive: true });
  return { TMPDIR, TEST_DATABASE_URL: databaseUrl, [temporalVariable]: temporalAddress };
}

async function runTests(
  { copy, ...servers }: Stage,
  tests: readonly string[],
  bail: number,
): Promise<Outcome> {
  await dropDatabases(servers.databaseUrl);
  const report = join(copy, 'report.json');
  rmSync(report, { force: true });
  const child = spawn(
    process.execPath,
    [
      ...['node_modules/vitest/vitest.mjs', 'run', '--config', 'scripts/mutants/faults.vitest.config.ts'],
      ...['--root', '.', `--bail=${bail}`, '--reporter=json', `--outputFile=${report}`, ...tests],
    ],
    { cwd: copy, env: { ...process.env, ...environmentOf(copy, servers) }, stdio: 'ignore' },
  );
  await once(child, 'exit');
  if (!existsSync(report))
    return { failed: [], broken: ['the sources are not compiled, or vitest does not start'] };
  return readReport(JSON.parse(readFileSync(report, 'utf8')) as Report);
}

async function playOne(stage: Stage, { name, file, find, put, tests }: Fault): Promise<PlayedFault> {
  const path = join(stage.copy, file);
  const text = readFileSync(path, 'utf8');
  const times = text.split(find).length - 1;
  if (times !== 1) {
    const trouble = `its text stands ${times} times in ${file}: ${JSON.stringify(find)}`;
    return { name, file, by: null, trouble };
  }
  writeFileSync(
    path,
    text.replace(find, () => put),
  );
  try {
    const { failed, broken } = await runTests(stage, tests, 1);
    const trouble = failed.length === 0 && broken.length > 0 ? `no test was run: ${broken[0]}` : null;
    return { name, file, by: failed[0] ?? null, trouble };
  } finally {
    writeFileSync(path, text);
  }
}

/** Both serve all faults: starting them takes longer than most tests. */
async function withServers<T>(work: (servers: Servers) => Promise<T>): Promise<T> {
  const dataDir = createTemporaryFolder('capstan-faults-data-', findMemoryDisk());
  const report = (): void => undefined;
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  const environment = process.env;
  const cacheDir = findCacheDir(environment, homedir());
  const common = { dataDir, ephemeral: true };
  try {
    const { path: program } = await findTemporal(
      { cacheDir, environment },
      createPartReport(report, 'Temporal'),
    );
    const [databasePort, port, uiPort] = await choosePorts();
    const [{ url: databaseUrl }, temporalAddress] = await Promise.all([
      startPostgres(
        supervisor,
        { ...common, port: databasePort, cacheDir },
        createPartReport(report, 'Postgres'),
      ),
      startTemporal(supervisor, { ...common, port, uiPort, environment, program }),
    ]);
    return await work({ databaseUrl, temporalAddress });
  } finally {
    await supervisor.stop();
  }
}

async function choosePorts(): Promise<readonly [number, number, number]> {
  const one = await choosePort([]);
  const two = await choosePort([], new Set([one]));
  return [one, two, await choosePort([], new Set([one, two]))];
}

function tell({ name, by, trouble }: PlayedFault): void {
  if (trouble !== null) console.error(`TROUBLE  ${name}: ${trouble}`);
  else if (by === null) console.error(`MISSED   ${name}`);
  else console.log(`caught   ${name} | ${by}`);
}

/** @param only the names to play, or parts of them; null = all */
export async function playFaults(only: readonly string[] | null): Promise<readonly PlayedFault[]> {
  const chosen = faults.filter(({ name }) => only === null || only.some((part) => name.includes(part)));
  const copy = copyCheckout();
  try {
    return await withServers(async (servers) => {
      const stage = { copy, ...servers };
      const before = await runTests(stage, [...new Set(chosen.flatMap(({ tests }) => tests))], 0);
      const unsound = [...before.failed, ...before.broken];
      if (unsound.length > 0) throw new Error(`without any fault these fail:\n${unsound.join('\n')}`);
      const played: PlayedFault[] = [];
      for (const fault of chosen) {
        const one = await playOne(stage, fault);
        tell(one);
        played.push(one);
      }
      return played;
    });
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
