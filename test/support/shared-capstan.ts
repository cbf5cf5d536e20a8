/**
 * One server and worker for all files of a test worker that need no settings of their own: each file has a project and
 * a key of its own, so it meets nothing of the others. Who starts one of its own pays four seconds of processor time.
 * Names of capabilities are not its own: each is one file's alone, and models are for who has a Capstan of its own.
 * There are two: of one nobody kills anything; of the other, which soon notices a death, files kill what they like.
 */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { connectDatabase } from '../../src/db/connect.ts';
import { type Capstan, type CapstanClient, createClient, startCapstan } from './capstan.ts';
import { hasTestFailed } from './failures.ts';
import { findLeftovers } from './leftovers.ts';
import { waitFor } from './wait.ts';

/** A Capstan as those see it who have a project there. */
export interface SharedCapstan
  extends CapstanClient,
    Pick<Capstan, 'url' | 'key' | 'projectId' | 'databaseUrl' | 'mediaUrl' | 'logs'> {}

/** Its server is at another address after each start. */
export interface MortalCapstan
  extends SharedCapstan,
    Pick<Capstan, 'startServer' | 'killServer' | 'startWorker' | 'killWorker' | 'addWorker'> {}

/** A cancel is heard with the next sign of life. */
const lastingSettings = { HEARTBEAT_INTERVAL_MS: '500' };
const mortalSettings = {
  HEARTBEAT_TIMEOUT_MS: '2000',
  LEASE_MS: '3000',
  SHUTDOWN_GRACE_MS: '1000',
  LIVENESS_MS: '500',
};

/** Kept by the module, as long as files of one project of tests follow one another. */
class Shared {
  readonly #settings: NodeJS.ProcessEnv;
  #started: Promise<Capstan> | null = null;

  constructor(settings: NodeJS.ProcessEnv) {
    this.#settings = settings;
  }

  async open(): Promise<Capstan> {
    this.#started ??= startCapstan(this.#settings, true);
    return this.#started.catch((error) => {
      this.#started = null;
      throw error;
    });
  }

  /** What a failed test may have left is not for the next file: that one starts anew. */
  async discard(): Promise<void> {
    const capstan = await this.#started;
    this.#started = null;
    await capstan?.stop();
  }
}

const lasting = new Shared(lastingSettings);
const mortal = new Shared(mortalSettings);

interface OwnProject extends CapstanClient, Pick<Capstan, 'key' | 'projectId'> {}

async function openProject(capstan: Capstan): Promise<OwnProject> {
  const name = 'a file of tests';
  const project = await capstan.request<{ project_id: string }>('POST', '/v1/projects', { name });
  const projectId = project.body.project_id;
  const wanted = { name, scopes: ['admin'], projects: [projectId] };
  const { key } = (await capstan.request<{ key: string }>('POST', '/v1/keys', wanted)).body;
  return { ...createClient(() => capstan.url, key), key, projectId };
}

/** With a project of the caller alone. To be called once in a file; it is not stopped by it. */
export async function shareCapstan(): Promise<SharedCapstan> {
  const capstan = await lasting.open();
  const { url, databaseUrl, mediaUrl, logs } = capstan;
  return { ...(await openProject(capstan)), url, databaseUrl, mediaUrl, logs };
}

/** When a file is over. */
export async function leaveCapstan(): Promise<void> {
  if (hasTestFailed()) await lasting.discard();
}

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
 * From before the first test of the file or block to after the last, with a project of its own. After each test what
 * was killed is started again, and what was added is killed; the file leaves no run behind that has not ended.
 */
export function useMortalCapstan(): MortalCapstan {
  const shared = {} as MortalCapstan;
  let capstan: Capstan;
  beforeAll(async () => {
    capstan = await mortal.open();
    const { databaseUrl, mediaUrl, logs, startServer, killServer, startWorker, killWorker, addWorker } =
      capstan;
    const processes = { databaseUrl, mediaUrl, logs, startServer, killServer, startWorker, killWorker };
    Object.assign(shared, await openProject(capstan), processes, { addWorker });
    Object.defineProperty(shared, 'url', { get: () => capstan.url, configurable: true });
  });
  afterEach(() => capstan.makeWhole());
  afterAll(async () => {
    if (hasTestFailed()) return mortal.discard();
    await expectNothingOpen(capstan).catch(async (error) => {
      await mortal.discard();
      throw error;
    });
  });
  return shared;
}
