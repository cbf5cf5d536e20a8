/**
 * Capstans with a project of the file that uses them. Capability names are shared on the common Capstan, so each
 * belongs to one file; models require a Capstan of one's own.
 */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { connectDatabase } from '../../src/db/connect.ts';
import { type Capstan, type CapstanClient, createClient, startCapstan } from './capstan.ts';
import { hasTestFailed } from './failures.ts';
import { findLeftovers } from './leftovers.ts';
import { borrowCapstan, type LentCapstan, readLentLogs } from './lend-capstan.ts';
import { placeOf } from './places.ts';
import { waitFor } from './wait.ts';

/** A Capstan as its projects see it. */
export interface SharedCapstan extends CapstanClient, LentCapstan {
  readonly projectId: string;
  /** The whole output of its processes. */
  readonly logs: () => Promise<string>;
}

/** A client of the test file's own project. */
interface OwnProject extends CapstanClient, Pick<Capstan, 'key' | 'projectId'> {}

/** @param admin with the right to create projects and keys */
async function openProject(admin: CapstanClient, findUrl: () => string): Promise<OwnProject> {
  const name = 'a file of tests';
  const project = await admin.request<{ project_id: string }>('POST', '/v1/projects', { name });
  const projectId = project.body.project_id;
  const wanted = { name, scopes: ['admin'], projects: [projectId] };
  const { key } = (await admin.request<{ key: string }>('POST', '/v1/keys', wanted)).body;
  return { ...createClient(findUrl, key, projectId), key, projectId };
}

/** The common Capstan of a test run, with a project of the caller: tests do not stop or kill it. */
export async function shareCapstan(): Promise<SharedCapstan> {
  const lender = placeOf('lender');
  const { url, key, databaseUrl, mediaUrl } = await borrowCapstan(lender);
  const project = await openProject(
    createClient(() => url, key),
    () => url,
  );
  return { ...project, url, databaseUrl, mediaUrl, logs: () => readLentLogs(lender) };
}

/** It notices a death soon. */
const mortalSettings = {
  HEARTBEAT_TIMEOUT_MS: '2000',
  LEASE_MS: '3000',
  SHUTDOWN_GRACE_MS: '1000',
  LIVENESS_MS: '500',
};

/** Maintenance closes what a file leaves open; anything else is the file's fault. */
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
 * A Capstan of the test file, from before its first test until after its last, whose processes tests may kill; its
 * server has a new address after each start. After each test killed processes are restarted and added ones are killed;
 * the file leaves no open run behind.
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
