/**
 * Capstans with a project of the file that uses them. Names of capabilities are not its own where others use the same
 * Capstan: each is one file's alone, and models are for who has a Capstan of its own.
 */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { connectDatabase } from '../../src/db/connect.ts';
import { type Capstan, type CapstanClient, createClient, startCapstan } from './capstan.ts';
import { hasTestFailed } from './failures.ts';
import { findLeftovers } from './leftovers.ts';
import { borrowCapstan, type LentCapstan, readLentLogs } from './lend-capstan.ts';
import { placeOf } from './places.ts';
import { waitFor } from './wait.ts';

/** A Capstan as those see it who have a project there. */
export interface SharedCapstan extends CapstanClient, LentCapstan {
  readonly projectId: string;
  /** All that its processes have printed. */
  readonly logs: () => Promise<string>;
}

/** Of the project of a file of tests. */
interface OwnProject extends CapstanClient, Pick<Capstan, 'key' | 'projectId'> {}

/** @param admin who may create projects and keys */
async function openProject(admin: CapstanClient, findUrl: () => string): Promise<OwnProject> {
  const name = 'a file of tests';
  const project = await admin.request<{ project_id: string }>('POST', '/v1/projects', { name });
  const projectId = project.body.project_id;
  const wanted = { name, scopes: ['admin'], projects: [projectId] };
  const { key } = (await admin.request<{ key: string }>('POST', '/v1/keys', wanted)).body;
  return { ...createClient(findUrl, key), key, projectId };
}

/** The one that all files of a test run use, with a project of the caller alone: it is not stopped and not killed. */
export async function shareCapstan(): Promise<SharedCapstan> {
  const lender = placeOf('lender');
  const { url, key, databaseUrl, mediaUrl } = await borrowCapstan(lender);
  const project = await openProject(
    createClient(() => url, key),
    () => url,
  );
  return { ...project, url, databaseUrl, mediaUrl, logs: () => readLentLogs(lender) };
}

/** It soon notices a death. */
const mortalSettings = {
  HEARTBEAT_TIMEOUT_MS: '2000',
  LEASE_MS: '3000',
  SHUTDOWN_GRACE_MS: '1000',
  LIVENESS_MS: '500',
};

/** What a file leaves open is made good by maintenance, or its fault. */
async function expectNothingOpen({ databaseUrl }: Capstan): Promise<void> {
  const db = connectDatabase(databaseUrl, 1);
  let open: readonly string[] = [];
  const isClosed = async (): Promise<boolean> => {
    open = await findLeftovers(db);
    return open.length === 0;
  };
  await waitFor('all to be closed', isClosed)
    .catch(({ message }) => {
      throw new Error(`${message}: ${open.join('; ')}`);
    })
    .finally(() => db.destroy());
}

/**
 * One of the file's own, to kill what it likes, from before its first test to after its last; its server is at another
 * address after each start. After each test what was killed is started again, and what was added is killed; the file
 * leaves no run behind that has not ended.
 */
export function useMortalCapstan(): Omit<Capstan, 'stop' | 'makeWhole'> {
  const used = {} as Capstan;
  let capstan: Capstan | null = null;
  beforeAll(async () => {
    capstan = await startCapstan(mortalSettings);
    Object.defineProperties(used, Object.getOwnPropertyDescriptors(capstan));
  });
  afterEach(() => capstan?.makeWhole());
  afterAll(async () => {
    if (capstan === null) return;
    await (hasTestFailed() ? Promise.resolve() : expectNothingOpen(capstan)).finally(capstan.stop);
  });
  return used;
}
