/** The real API over HTTP on a free port, with its own database, a project and a key with all scopes. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyScope } from '@capstan/core/contracts/access';
import type { Problem } from '@capstan/core/contracts/problem';
import { createSchemaVetter } from '@capstan/core/schemas/schema-vetter';
import { pino } from 'pino';
import { inject } from 'vitest';
import { createApp } from '../../src/api/app.ts';
import { listen } from '../../src/api/listen.ts';
import { ConfigSchema } from '../../src/config.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { createVerifiedKeys } from '../../src/parts/access/verified-keys.ts';
import { createServerRuntime } from '../../src/processes/server-runtime.ts';
import { ensureDefaultProject } from '../../src/use-cases/setup.ts';
import { createTestDatabase } from './database.ts';
import { waitFor } from './wait.ts';

export interface TestApi {
  readonly url: string;
  readonly db: Db;
  readonly apiKey: string;
  readonly projectId: string;
  /** Every log line, as text. */
  readonly log: string[];
  /** The folder of the console's build; absent at first. */
  readonly consoleFolder: string;
  /** `fetch` with the admin key; a header set to '' is omitted. */
  readonly call: (path: string, options?: CallOptions) => Promise<Response>;
  readonly createKey: (options: { scopes: KeyScope[]; projects?: string[] }) => Promise<string>;
  /** A second project with a key of its own. */
  readonly createProject: (name: string) => Promise<{ projectId: string; apiKey: string }>;
  readonly waitForRuns: (count: number) => Promise<void>;
  /** The router knows the instance and its spec when this resolves. It looks at once, and asks no route. */
  readonly waitForInstance: (capability: string, endpoint: string) => Promise<void>;
  /** The router knows all registrations when this resolves. */
  readonly refreshFleet: () => Promise<void>;
  readonly closeServer: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface CallOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  /** A string or bytes are sent unchanged; anything else as JSON. */
  readonly body?: unknown;
}

/** Status and JSON body of an answer. */
export async function readJson<Body = Problem>(asked: Promise<Response>): Promise<[number, Body]> {
  const answer = await asked;
  return [answer.status, (await answer.json()) as Body];
}

function toBody(body: unknown): { body?: string | Uint8Array; type?: string } {
  if (body === undefined) return {};
  if (typeof body === 'string' || body instanceof Uint8Array) return { body };
  return { body: JSON.stringify(body), type: 'application/json' };
}

function createCall(url: string, apiKey: string) {
  return (path: string, { method, headers = {}, body }: CallOptions = {}): Promise<Response> => {
    const sent = toBody(body);
    const all: Record<string, string> = {
      authorization: `Bearer ${apiKey}`,
      ...(sent.type === undefined ? {} : { 'content-type': sent.type }),
      ...headers,
    };
    return fetch(`${url}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: Object.entries(all).filter(([, value]) => value !== ''),
      redirect: 'manual',
      ...(sent.body === undefined ? {} : { body: sent.body }),
    });
  };
}

/** The thread of a vetter takes longer to start than most tests: all servers of a test process share one. */
const vetter = createSchemaVetter();

/** Settings of a server without a round of maintenance: it would change rows that a test writes, or take a connection. */
export const noMaintenance = { MAINTENANCE_MS: 60_000 };

interface TestApiOptions {
  /** Maps the database's `host:port` to the API's route to it. The test itself connects directly. */
  readonly wayTo?: (host: string) => Promise<string>;
  /** How long a verified key is used without a query. For a test that changes the rows of keys or sessions itself: 0. */
  readonly keyTrustMs?: number;
}

export async function startTestApi(
  settings: Record<string, number | string> = {},
  { wayTo, keyTrustMs }: TestApiOptions = {},
): Promise<TestApi> {
  const database = await createTestDatabase();
  const way = new URL(database.url);
  if (wayTo !== undefined) way.host = await wayTo(way.host);
  const folder = await mkdtemp(join(tmpdir(), 'capstan-api-'));
  const config = ConfigSchema.parse({
    DATABASE_URL: way.href,
    DATABASE_POOL: 5,
    TASK_QUEUE: database.name,
    MEDIA_URL: `file://${join(folder, 'media')}`,
    RATE_LIMITS: 'off',
    ...settings,
  });
  const consoleFolder = join(folder, 'console');
  const publicUrl = () => config.PUBLIC_URL ?? 'http://capstan.test';
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  const log: string[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => void log.push(line) });
  const runtime = await createServerRuntime(config, { logger, publicUrl });
  const db = connectDatabase(database.url, 3);
  const { project_id: projectId, api_key: apiKey } = await ensureDefaultProject(db, {
    apiKeyFile: join(folder, 'api-key'),
  });
  const ctx = { ...runtime.ctx, verifiedKeys: createVerifiedKeys(keyTrustMs), vetter };
  const server = await listen(createApp({ ctx, consoleFolder }), {
    host: '127.0.0.1',
    port: 0,
    headersTimeoutMs: config.HEADERS_TIMEOUT_MS,
    graceMs: config.SHUTDOWN_GRACE_MS,
  });
  const call = createCall(server.url, apiKey);

  const createKey: TestApi['createKey'] = async ({ scopes, projects = [projectId] }) => {
    const answer = await call('/v1/keys', { body: { name: 'test', scopes, projects } });
    return ((await answer.json()) as { key: string }).key;
  };

  return {
    url: server.url,
    db,
    apiKey,
    projectId,
    log,
    consoleFolder,
    call,
    createKey,
    createProject: async (name) => {
      const answer = await call('/v1/projects', { body: { name } });
      const { project_id } = (await answer.json()) as { project_id: string };
      return {
        projectId: project_id,
        apiKey: await createKey({ scopes: ['admin'], projects: [project_id] }),
      };
    },
    waitForRuns: async (count) => {
      await waitFor(`${count} runs`, async () => (await db('run').select('run_id')).length >= count);
    },
    waitForInstance: async (capability, endpoint) => {
      const { fleet } = runtime.ctx;
      await waitFor('the router to know it', async () => {
        await fleet.refresh();
        const known = fleet.all(capability).find((instance) => instance.endpoint === endpoint);
        return known !== undefined && known.spec_digest !== null;
      });
    },
    refreshFleet: () => runtime.ctx.fleet.refresh(),
    closeServer: () => server.close(),
    close: async () => {
      await server.close();
      await runtime.close();
      await db.destroy();
      await rm(folder, { recursive: true });
      await database.drop();
    },
  };
}
