/**
 * Capstan as in production: server and worker as separate processes, on a database and a task queue of the test, so
 * that a test may kill any of them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { CapabilitySummary } from '@capstan/core/contracts/capability';
import { type EventPage, type RunEvent, terminalEvents } from '@capstan/core/contracts/event';
import type { Run } from '@capstan/core/contracts/run';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import { findCompiled } from './compiled.ts';
import { createTestDatabase } from './database.ts';
import { placeOf } from './places.ts';
import { waitFor } from './wait.ts';

interface Program {
  readonly child: ChildProcess;
  /** Resolves with the log line that has the given message. */
  readonly ready: Promise<Record<string, unknown>>;
}

interface ProgramOptions {
  /** Of another version; default: this one. */
  readonly packageFolder?: string | undefined;
  readonly file: string;
  readonly readyMessage: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Receives all of its output. */
  readonly log: string[];
  /** Whether it ends with this process, however that ends. */
  readonly endsWithUs: boolean;
}

function startProgram({ file, readyMessage, environment, log, ...others }: ProgramOptions): Program {
  const { packageFolder = placeOf('packageFolder'), endsWithUs } = others;
  const find = (source: string): string => findCompiled(packageFolder, source);
  const tie = endsWithUs ? ['--import', find('test/support/tied-process.ts')] : [];
  const child = spawn(process.execPath, [...tie, find(file)], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe', ...(endsWithUs ? ['ipc' as const] : [])],
  });
  let printed = '';
  const keep = (text: string): void => {
    log.push(text);
    printed = (printed + text).slice(-4_000);
  };
  child.stderr?.setEncoding('utf8').on('data', keep);
  const ready = new Promise<Record<string, unknown>>((resolve, reject) => {
    createInterface({ input: child.stdout as Readable }).on('line', (line) => {
      if (process.env.TEST_LOGS) console.error(line);
      keep(line);
      if (line.includes(readyMessage)) resolve(JSON.parse(line));
    });
    child.once('exit', (code) => {
      reject(new Error(`${file} ended with ${code}: ${printed}`));
      if (code !== null && code !== 0) console.error(`${file} ended with ${code}: ${printed}`);
    });
  });
  ready.catch(() => undefined);
  return { child, ready };
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await gone;
}

/** A second worker. */
export interface AddedWorker {
  /** Stops it, and resolves when it has exited. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Suspends or resumes it. */
  send(signal: 'SIGSTOP' | 'SIGCONT'): void;
}

export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** The actions of a client with a key. */
export interface CapstanClient {
  request<Body>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<Body>>;
  /** The body of a GET, which is asked again as the server wants when it is busy. @throws Error any other refusal */
  read<Body>(path: string): Promise<Body>;
  /** Starts a run of a definition and returns it. */
  submit(steps: readonly object[], job?: object, extra?: object): Promise<Run>;
  /** Resolves to the run when it has ended. */
  ended(runId: string, timeoutMs?: number): Promise<Run>;
  /** The first 200 events of a run, including its last one, which becomes visible shortly after its end. */
  logOf(runId: string): Promise<RunEvent[]>;
}

export interface Capstan extends CapstanClient {
  readonly url: string;
  readonly key: string;
  readonly projectId: string;
  readonly databaseUrl: string;
  readonly taskQueue: string;
  /** Address of its media store. */
  readonly mediaUrl: string;
  startWorker(): Promise<void>;
  killWorker(signal: NodeJS.Signals): Promise<void>;
  /** @param packageFolder of another version */
  addWorker(packageFolder?: string): Promise<AddedWorker>;
  /** @param others settings of this process only @param packageFolder of another version */
  startServer(others?: NodeJS.ProcessEnv, packageFolder?: string): Promise<void>;
  /** The running server's. */
  serverPid(): number;
  killServer(signal: NodeJS.Signals): Promise<void>;
  /** Restores one server and one worker. */
  makeWhole(): Promise<void>;
  /** The whole output of its processes. */
  logs(): string;
  stop(): Promise<void>;
}

/** @param projectId that `read` asks about: another test may have given the key more projects */
export function createClient(findUrl: () => string, key: string, projectId?: string): CapstanClient {
  const request: CapstanClient['request'] = async (method, path, body, headers = {}) => {
    const response = await fetch(findUrl() + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  const project: Record<string, string> = projectId === undefined ? {} : { 'x-project-id': projectId };
  const read: CapstanClient['read'] = async <Body>(path: string) => {
    const { status, body } = await waitFor(`an answer of GET ${path}`, async () => {
      const answer = await request<Body>('GET', path, undefined, project);
      return answer.status === 503 ? undefined : answer;
    });
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  return {
    request,
    read,
    submit: async (steps, job = {}, extra = {}) => {
      const definition = { pipeline: 'test', version: '1', steps, ...extra };
      const { status, body } = await request<Run>('POST', '/v1/runs', { definition, job });
      if (status !== 202) throw new Error(`POST /v1/runs: ${status} ${JSON.stringify(body)}`);
      return body;
    },
    ended: (runId, timeoutMs = 120_000) =>
      waitFor(
        `run ${runId} to end`,
        async () => {
          const { status, body } = await request<Run>('GET', `/v1/runs/${runId}`);
          return status === 503 || body.finished_at === null ? undefined : body; // 503: the server is busy
        },
        timeoutMs,
      ).catch(async (error: Error) => {
        throw new Error(`${error.message}; ${await tellStandstill(request, runId)}`);
      }),
    logOf: (runId) =>
      waitFor(`the end of run ${runId} in its log`, async () => {
        const { body } = await request<Partial<EventPage>>('GET', `/v1/runs/${runId}/events?limit=200`);
        return body.items?.some(({ type }) => terminalEvents.has(type)) === true ? body.items : undefined;
      }),
  };
}

/** The open parts of a run that should have ended, the last of its first 200 events, and instances that are not up. */
async function tellStandstill(request: CapstanClient['request'], runId: string): Promise<string> {
  const [{ body: run }, { body: events }, { body: fleet }] = await Promise.all([
    request<Run>('GET', `/v1/runs/${runId}`),
    request<{ items?: readonly object[] }>('GET', `/v1/runs/${runId}/events?limit=200`),
    request<{ items?: readonly CapabilitySummary[] }>('GET', '/v1/capabilities'),
  ]);
  const open = run.steps.filter(({ finished_at }) => finished_at === null);
  const away = fleet.items?.flatMap(({ instances }) => instances).filter(({ state }) => state !== 'up');
  const last = events.items?.slice(-20);
  return JSON.stringify({ now: new Date(), state: run.state, open, last, away }, null, 1);
}

interface StartWay {
  /** Its processes end with this one: for those that no test stops. */
  readonly endsWithUs?: boolean;
  /** Its worker knows the address of its server, where instances answer later. It starts after the server. */
  readonly takesLaterAnswers?: boolean;
}

export async function startCapstan(
  settings: NodeJS.ProcessEnv = {},
  { endsWithUs = false, takesLaterAnswers = false }: StartWay = {},
): Promise<Capstan> {
  const database = await createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'capstan-e2e-'));
  const access = await prepareDatabase(database.url, { apiKeyFile: join(folder, 'key') });
  const taskQueue = `test-${randomBytes(6).toString('hex')}`;
  const environment = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: placeOf('temporalAddress'),
    MEDIA_URL: `file://${join(folder, 'media')}`,
    TASK_QUEUE: taskQueue,
    PORT: '0',
    MAINTENANCE_MS: '500',
    ...settings,
  };
  let server: Program | null = null;
  let worker: Program | null = null;
  let url = '';
  const log: string[] = [];
  const added: Program[] = [];
  const startWorkerProgram = (packageFolder?: string): Program => {
    const own = takesLaterAnswers ? { ...environment, PUBLIC_URL: url } : environment;
    return startProgram({
      packageFolder,
      file: 'src/worker.ts',
      readyMessage: 'worker is ready',
      log,
      endsWithUs,
      environment: own,
    });
  };

  const killAdded = (): Promise<unknown> =>
    Promise.all(added.splice(0).map(({ child }) => end(child, 'SIGKILL')));

  const client = createClient(() => url, access.api_key);

  const capstan: Capstan = {
    get url() {
      return url;
    },
    key: access.api_key,
    projectId: access.project_id,
    databaseUrl: database.url,
    taskQueue,
    mediaUrl: environment.MEDIA_URL,
    ...client,
    startServer: async (others = {}, packageFolder) => {
      server = startProgram({
        packageFolder,
        file: 'src/server.ts',
        readyMessage: 'server is ready',
        log,
        endsWithUs,
        environment: { ...environment, ...others },
      });
      url = String((await server.ready).url);
    },
    serverPid: () => {
      if (server?.child.pid === undefined) throw new Error('no server is running');
      return server.child.pid;
    },
    killServer: async (signal) => {
      if (server !== null) await end(server.child, signal);
    },
    startWorker: async () => {
      worker = startWorkerProgram();
      await worker.ready;
    },
    killWorker: async (signal) => {
      if (worker !== null) await end(worker.child, signal);
    },
    addWorker: async (packageFolder) => {
      const program = startWorkerProgram(packageFolder);
      added.push(program);
      await program.ready;
      return {
        kill: (signal) => end(program.child, signal),
        send: (signal) => void program.child.kill(signal),
      };
    },
    makeWhole: async () => {
      await killAdded();
      await Promise.all([
        server === null || hasEnded(server.child) ? capstan.startServer() : undefined,
        worker === null || hasEnded(worker.child) ? capstan.startWorker() : undefined,
      ]);
    },
    logs: () => log.join('\n'),
    stop: async () => {
      await Promise.all([killAdded(), ...[capstan.killWorker('SIGKILL'), capstan.killServer('SIGKILL')]]);
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  const started = capstan.startServer();
  if (takesLaterAnswers) await started;
  await Promise.all([started, capstan.startWorker()]);
  return capstan;
}
