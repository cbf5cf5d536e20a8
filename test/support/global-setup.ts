/**
 * One real Postgres, one real Temporal dev server and one compiled package, with the only workflow bundle, for a whole
 * test run. They end with it, also when it is killed. TEST_DATABASE_URL names a Postgres to use instead, whose
 * databases of failed tests then stay.
 */
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { DefaultLogger } from '@temporalio/worker';
import type { TestProject } from 'vitest/node';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startWatchdog } from '../../src/dev/supervisor/watchdog.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { builtBundleName, loadWorkflowBundle } from '../../src/runtime/bundle-workflows.ts';
import { compilePackage } from './compile-package.ts';
import { findCompiled } from './compiled.ts';
import { packageVariable } from './compiled-sources.ts';
import { findMemoryDisk } from './memory-disk.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Maintenance database of a Postgres on which tests may create databases. */
    databaseUrl: string;
    temporalAddress: string;
    /** Folder of the compiled package. */
    packageFolder: string;
    /** File of the bundle that workers run. */
    workflowBundle: string;
  }
}

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
    // As a worker from sources does that is told of no bundle.
    const { code, file } = await loadWorkflowBundle(undefined, new DefaultLogger('ERROR'));
    if (file !== null) throw new Error(`the workflows of ${file} would be tested, not those of the sources`);
    await writeFile(workflowBundle, code);
  };
  await write();
  process.env[packageVariable] = packageFolder;
  // Before each further round of a watch: the sources may be others by then.
  project.onTestsRerun(write);
  return { packageFolder, workflowBundle };
}

/** Silent while all goes well and fast; a build of the dev server takes minutes and says so. */
function createReport(): Report {
  let spokenAt = 0;
  return ({ part, status, detail, elapsedMs }) => {
    const isTold = status === 'working' ? elapsedMs - spokenAt > 10_000 : status !== 'ready';
    if (!isTold) return;
    spokenAt = elapsedMs;
    console.error(`${part}: ${detail} (${Math.round(elapsedMs / 1000)} s)`);
  };
}

/** Where programs and tests have their temporary files, also those that are killed. @returns removes it */
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
  const stop = (): Promise<void> => supervisor.stop().then(removeScratch);
  const place = { supervisor, report, dataDir, cacheDir: findCacheDir(process.env, homedir()) };
  try {
    const [databaseUrl, temporalAddress, { packageFolder, workflowBundle }] = await Promise.all([
      setupPostgres(place),
      setupTemporal(place),
      setupPackage(place, project),
    ]);
    project.provide('databaseUrl', databaseUrl);
    project.provide('temporalAddress', temporalAddress);
    project.provide('packageFolder', packageFolder);
    project.provide('workflowBundle', workflowBundle);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
