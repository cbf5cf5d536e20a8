/**
 * One real Postgres, one real Temporal dev server and one workflow bundle for a whole test run. They end with it,
 * also when it is killed. TEST_DATABASE_URL names a Postgres to use instead, whose databases of failed tests then stay.
 */
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { builtBundleName, bundleWorkflows } from '../../src/runtime/bundle-workflows.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Maintenance database of a Postgres on which tests may create databases. */
    databaseUrl: string;
    temporalAddress: string;
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

async function setupBundle({ dataDir }: Place, project: TestProject): Promise<string> {
  const file = join(dataDir, builtBundleName);
  const write = async (): Promise<void> => writeFile(file, await bundleWorkflows());
  await write();
  // Before each further round of a watch: the workflows may be others by then.
  project.onTestsRerun(write);
  return file;
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

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const report = createReport();
  const dataDir = createTemporaryFolder('capstan-test-');
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  const place = { supervisor, report, dataDir, cacheDir: findCacheDir(process.env, homedir()) };
  try {
    const [databaseUrl, temporalAddress, workflowBundle] = await Promise.all([
      setupPostgres(place),
      setupTemporal(place),
      setupBundle(place, project),
    ]);
    project.provide('databaseUrl', databaseUrl);
    project.provide('temporalAddress', temporalAddress);
    project.provide('workflowBundle', workflowBundle);
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
  return () => supervisor.stop();
}
