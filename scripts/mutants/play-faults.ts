/**
 * Makes one fault after the other in a copy of the checkout and runs the tests that must notice, over one Postgres that
 * is there for all of them. All those tests must pass before, so that a failure means the fault.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import pg from 'pg';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { createSupervisor } from '../../src/dev/supervisor/supervisor.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
import { type Fault, faults } from './faults.ts';

export interface PlayedFault extends Pick<Fault, 'name' | 'file'> {
  /** The test that has noticed; null = none has. */
  readonly by: string | null;
  /** Why nothing can be said. */
  readonly trouble: string | null;
}

interface Stage {
  readonly copy: string;
  readonly databaseUrl: string;
}

interface Outcome {
  readonly failed: readonly string[];
  /** Files that did not come to their tests. */
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

async function runTests({ copy, databaseUrl }: Stage, tests: readonly string[]): Promise<Outcome> {
  await dropDatabases(databaseUrl);
  const report = join(copy, 'report.json');
  rmSync(report, { force: true });
  const child = spawn(
    process.execPath,
    [
      ...['node_modules/vitest/vitest.mjs', 'run', '--config', 'scripts/mutants/faults.vitest.config.ts'],
      ...['--root', '.', '--bail', '1', '--reporter=json', `--outputFile=${report}`, ...tests],
    ],
    { cwd: copy, env: { ...process.env, TEST_DATABASE_URL: databaseUrl }, stdio: 'ignore' },
  );
  await once(child, 'exit');
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  return {
    failed: testResults.flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'failed')
        .map(({ fullName }) => `${basename(name)}: ${fullName}`),
    ),
    broken: testResults
      .filter(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0)
      .map(({ name, message }) => `${basename(name)}: ${message.split('\n')[0]}`),
  };
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
    const { failed, broken } = await runTests(stage, tests);
    const trouble = failed.length === 0 && broken.length > 0 ? `no test was run: ${broken[0]}` : null;
    return { name, file, by: failed[0] ?? null, trouble };
  } finally {
    writeFileSync(path, text);
  }
}

async function withPostgres<T>(work: (databaseUrl: string) => Promise<T>): Promise<T> {
  const dataDir = createTemporaryFolder('capstan-faults-data-');
  const report = (): void => undefined;
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  try {
    const cacheDir = findCacheDir(process.env, homedir());
    const options = { dataDir, port: await choosePort([]), ephemeral: true, cacheDir };
    const { url } = await startPostgres(supervisor, options, createPartReport(report, 'Postgres'));
    return await work(url);
  } finally {
    await supervisor.stop();
  }
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
    return await withPostgres(async (databaseUrl) => {
      const stage = { copy, databaseUrl };
      const before = await runTests(stage, [...new Set(chosen.flatMap(({ tests }) => tests))]);
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
