/**
 * One real Postgres and one real Temporal dev server for a whole test run. They end with it, also when it is
 * killed. TEST_DATABASE_URL names a Postgres to use instead, whose databases of failed tests then stay.
 */
import { homedir } from 'node:os';
import type { TestProject } from 'vitest/node';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Maintenance database of a Postgres on which tests may create databases. */
    databaseUrl: string;
    temporalAddress: string;
  }
}

interface Place {
  readonly supervisor: Supervisor;
  readonly report: Report;
  readonly dataDir: string;
  readonly cacheDir: string;
}

const setupPostgres = async ({ supervisor, report, dataDir, cacheDir }: Place): Promise<string> => {
  if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL;
  const options = { dataDir, port: await choosePort([]), ephemeral: true, cacheDir };
  return (await startPostgres(supervisor, options, createPartReport(report, 'Postgres'))).url;
};

const setupTemporal = async ({ supervisor, report, dataDir, cacheDir }: Place): Promise<string> => {
  const environment = process.env;
  const found = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
  const port = await choosePort([]);
  const uiPort = await choosePort([], new Set([port]));
  return startTemporal(supervisor, {
    ...{ dataDir, port, uiPort, environment },
    ephemeral: true,
    program: found.path,
  });
};

/** Silent while all goes well and fast; a build of the dev server takes minutes and says so. */
const createReport = (): Report => {
  let spokenAt = 0;
  return ({ part, status, detail, elapsedMs }) => {
    const isTold = status === 'working' ? elapsedMs - spokenAt > 10_000 : status !== 'ready';
    if (!isTold) return;
    spokenAt = elapsedMs;
    console.error(`${part}: ${detail} (${Math.round(elapsedMs / 1000)} s)`);
  };
};

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const report = createReport();
  const dataDir = createTemporaryFolder('capstan-test-');
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  const place = { supervisor, report, dataDir, cacheDir: findCacheDir(process.env, homedir()) };
  try {
    const [databaseUrl, temporalAddress] = await Promise.all([setupPostgres(place), setupTemporal(place)]);
    project.provide('databaseUrl', databaseUrl);
    project.provide('temporalAddress', temporalAddress);
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
  return () => supervisor.stop();
};
