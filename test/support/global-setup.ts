/**
 * One real Postgres, one real Temporal dev server and one compiled package, with the only workflow bundle, for a whole
 * test run. They end with it, even when it is killed. TEST_DATABASE_URL names a Postgres to use instead, which then
 * keeps the databases of failed tests.
 */
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { DefaultLogger } from '@temporalio/worker';
import type { TestProject } from 'vitest/node';
import { startFleet } from '../../packages/console/test/support/shared-fleet.ts';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startWatchdog } from '../../src/dev/supervisor/watchdog.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { builtBundleName, loadWorkflowBundle } from '../../src/processes/bundle-workflows.ts';
import { compilePackage } from './compile-package.ts';
import { findCompiled } from './compiled.ts';
import { packageVariable } from './compiled-sources.ts';
import { startLender } from './lend-capstan.ts';
import { findMemoryDisk } from './memory-disk.ts';
import { keepPlace } from './places.ts';

interface Place {
  readonly supervisor: Supervisor;
  readonly report: Report;
  readonly dataDir: string;
  readonly cacheDir: string;
}

async function setupPostgres({ supervisor, report, dataDir, cacheDir }: Place): Promise<string> {
  if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
  const options = { dataDir, port: await choosePort([]), ephemeral: true, cacheDir };
  return (await startPostgres(supervisor, options, createPartReport(report, 'Postgres'))).url;
}

async function setupTemporal({ supervisor, report, dataDir, cacheDir }: Place): Promise<string> {
  const environment = process.env;
  const found = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
  const port = await choosePort([]);
  const uiPort = await choosePort([], new Set([port]));
  return startTemporal(supervisor, {
    dataDir,
    port,
    uiPort,
    environment,
    ephemeral: true,
    program: found.path,
  });
}

interface Compiled {
  readonly packageFolder: string;
  readonly workflowBundle: string;
}

async function setupPackage({ dataDir }: Place, project: TestProject): Promise<Compiled> {
  const packageFolder = join(dataDir, 'package');
  const workflowBundle = findCompiled(packageFolder, `src/${builtBundleName}`);
  const root = project.vitest.config.root;
  const write = async (): Promise<void> => {
    await compilePackage(root, packageFolder);
    // Like a worker from sources without a bundle.
    const { code, file } = await loadWorkflowBundle(undefined, new DefaultLogger('ERROR'));
    if (file !== null) throw new Error(`the workflows of ${file} would be tested, not those of the sources`);
    await writeFile(workflowBundle, code);
  };
  await write();
  process.env[packageVariable] = packageFolder;
  // Before each further run of a watch: the sources may have changed.
  project.onTestsRerun(write);
  return { packageFolder, workflowBundle };
}

/** Silent while it is fast and succeeds; a build of the dev server takes minutes and is announced. */
function createReport(): Report {
  let spokenAt = 0;
  return ({ part, status, detail, elapsedMs }) => {
    const isTold = status === 'working' ? elapsedMs - spokenAt > 10_000 : status !== 'ready';
    if (!isTold) return;
    spokenAt = elapsedMs;
    console.error(`${part}: ${detail} (${Math.round(elapsedMs / 1000)} s)`);
  };
}

/** The folder for temporary files of programs and tests, including killed ones. @returns removes it */
function setupScratch(): () => Promise<void> {
  const folder = createTemporaryFolder('capstan-scratch-');
  process.env.TMPDIR = folder;
  return startWatchdog(folder).close;
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  process.env.RATE_LIMITS = 'off'; // for every process that a test starts
  const report = createReport();
  const dataDir = createTemporaryFolder('capstan-test-', findMemoryDisk());
  const removeScratch = setupScratch();
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  const lender = await startLender(startFleet);
  const stop = (): Promise<void> => lender.close().then(supervisor.stop).then(removeScratch);
  const tools = { supervisor, report, dataDir, cacheDir: findCacheDir(process.env, homedir()) };
  try {
    const [databaseUrl, temporalAddress, { packageFolder, workflowBundle }] = await Promise.all([
      setupPostgres(tools),
      setupTemporal(tools),
      setupPackage(tools, project),
    ]);
    const places = { databaseUrl, temporalAddress, packageFolder, workflowBundle, lender: lender.url };
    for (const [part, place] of Object.entries(places) as [keyof typeof places, string][]) {
      keepPlace(part, place);
      project.provide(part, place);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
