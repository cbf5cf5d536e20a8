/** A Postgres and a Temporal of their own for a trial, as in production. */
import { homedir } from 'node:os';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import type { Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';

export interface Backing {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
}

export async function startBacking(
  supervisor: Supervisor,
  dataDir: string,
  report: Report,
): Promise<Backing> {
  const cacheDir = findCacheDir(process.env, homedir());
  const environment = process.env;
  const ports = { postgres: await choosePort([]), temporal: await choosePort([]), ui: await choosePort([]) };
  const postgres = { dataDir, cacheDir, ephemeral: true, port: ports.postgres };
  const server = await startPostgres(supervisor, postgres, createPartReport(report, 'Postgres'));
  const found = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
  const temporalAddress = await startTemporal(supervisor, {
    dataDir,
    environment,
    ephemeral: true,
    program: found.path,
    port: ports.temporal,
    uiPort: ports.ui,
  });
  return { temporalAddress, databaseUrl: await ensureDatabase(server, 'capstan') };
}
