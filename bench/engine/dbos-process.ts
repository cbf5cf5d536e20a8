/** The DBOS application: server and worker in one process, in a database of its own on the same Postgres. */
import { readConfig } from '../../src/config.ts';
import { ensureRivals } from '../shared/ensure-rivals.ts';
import type { Place } from '../shared/run-bench.ts';
import { answersAt, describeProcess, findScript } from './bench-process.ts';
import type { Endpoints } from './capabilities.ts';

export interface DbosAddresses {
  readonly url: string;
  readonly databaseUrl: string;
}

/** DBOS makes its database itself. @param capstanUrl database of Capstan */
export async function startDbos(
  { supervisor, dataDir, nextPort }: Place,
  { capstanUrl, endpoints }: { readonly capstanUrl: string; readonly endpoints: Endpoints },
): Promise<DbosAddresses> {
  ensureRivals(['@dbos-inc/dbos-sdk']);
  const databaseUrl = Object.assign(new URL(capstanUrl), { pathname: '/dbos' }).href;
  const { DATABASE_POOL } = readConfig({ DATABASE_URL: databaseUrl });
  const port = await nextPort();
  const url = `http://127.0.0.1:${port}`;
  await supervisor.start(
    describeProcess({
      dataDir,
      name: 'DBOS application',
      env: { NODE_ENV: 'production' },
      program: findScript(
        'dbos-worker.mjs',
        JSON.stringify(endpoints),
        String(port),
        databaseUrl,
        String(DATABASE_POOL),
      ),
      isReady: () => answersAt(url),
    }),
  );
  return { url, databaseUrl };
}
