/**
 * Work with untrusted schemas in a thread with limits on time and memory, one request at a time. A thread that reaches a
 * limit is terminated, and the next request gets a new one. Its requests take turns by name, so that many by one schema
 * do not keep those by others. A thread takes a quarter of a second to start; many processes never need one.
 */
import { Worker } from 'node:worker_threads';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import type { Repairs } from '../repair/propose-repairs.ts';
import type { FormatUse } from './formats.ts';
import type { SchemaError } from './schema-errors.ts';

/** The entry file of the thread: the source file, or its compiled form. */
const schemaThreadEntry = new URL(
  import.meta.url.endsWith('.ts') ? './schema-thread.source.mjs' : './schema-thread.js',
  import.meta.url,
);

/** The findings of a check of a value: `errors` for people, `findings` for a repair, and the repairs themselves. */
export interface CheckAnswers {
  readonly errors: readonly SchemaError[];
  readonly findings: readonly SchemaFinding[];
  readonly repairs: Repairs;
}

export type CheckQuestion = keyof CheckAnswers;

export interface CheckInThread {
  readonly kind: 'check';
  /** Of the schema and the use of its formats. */
  readonly name: string;
  readonly schema: JsonObject;
  readonly formats: FormatUse;
  readonly asked: CheckQuestion;
  readonly value: Json;
}

export type ThreadRequest =
  | { readonly kind: 'vet'; readonly name: string; readonly schema: JsonObject }
  | CheckInThread;

export interface ThreadAnswer {
  /** Why the schema cannot be used, or null. */
  readonly refused: string | null;
  readonly found?: CheckAnswers[CheckQuestion];
}

export interface ThreadLimits {
  /** Processor time for one request. */
  readonly timeLimitMs: number;
  readonly heapLimitMb: number;
}

export interface SchemaThread {
  /**
   * @throws LimitReached, Error when the thread cannot be started or is lost, the reason of `signal` when it aborts
   */
  ask(request: ThreadRequest, signal?: AbortSignal): Promise<ThreadAnswer>;
  close(): Promise<void>;
}

/** For the start of the thread, and for a request on a machine that gives it no processor time. */
const longestMs = 30_000;
/** Less than the main thread's, so that a schema that compiles in the thread does not overflow here. */
const stackLimitMb = 0.8;

/** @throws Error when the thread does not start in time, the reason of `signal` when it aborts */
async function startThread(heapLimitMb: number, signal?: AbortSignal): Promise<Worker> {
  const thread = new Worker(schemaThreadEntry, {
    execArgv: [],
    resourceLimits: {
      maxOldGenerationSizeMb: heapLimitMb,
      maxYoungGenerationSizeMb: 16,
      stackSizeMb: stackLimitMb,
    },
  });
  thread.unref();
  thread.on('error', () => undefined); // a pending request gets the error too
  await hear(thread, Number.POSITIVE_INFINITY, signal);
  return thread;
}

type TurnTask = () => Promise<unknown>;

/** Runs work one after the other; each name has a turn before one of them has its next. */
function createNamedTurns() {
  const waiting = new Map<string, TurnTask[]>();
  let isBusy = false;

  const serve = async (): Promise<void> => {
    isBusy = true;
    for (let next = waiting.entries().next(); !next.done; next = waiting.entries().next()) {
      const [name, [first, ...rest]] = next.value;
      waiting.delete(name);
      if (rest.length > 0) waiting.set(name, rest);
      await first?.();
    }
    isBusy = false;
  };

  return <Result>(name: string, work: () => Promise<Result>): Promise<Result> =>
    new Promise<Result>((resolve, reject) => {
      waiting.set(name, [...(waiting.get(name) ?? []), () => work().then(resolve, reject)]);
      if (!isBusy) void serve();
    });
}

export function createSchemaThread({ timeLimitMs, heapLimitMb }: ThreadLimits): SchemaThread {
  const inTurn = createNamedTurns();
  let thread: Worker | null = null;

  const start = async (signal?: AbortSignal): Promise<Worker> => {
    const started = await startThread(heapLimitMb, signal);
    started.once('exit', () => {
      if (thread === started) thread = null;
    });
    return started;
  };

  const ask = async (request: ThreadRequest, signal?: AbortSignal): Promise<ThreadAnswer> => {
    signal?.throwIfAborted();
    thread ??= await start(signal);
    const answer = hear(thread, timeLimitMs, signal);
    thread.postMessage(request);
    try {
      return (await answer) as ThreadAnswer;
    } catch (error) {
      thread = null;
      throw error;
    }
  };

  return {
    ask: (request, signal) => inTurn(request.name, () => ask(request, signal)),
    close: async () => {
      await thread?.terminate();
    },
  };
}

export class LimitReached extends Error {
  readonly kind: 'time' | 'memory';
  constructor(kind: 'time' | 'memory') {
    super(`limit of ${kind} reached`);
    this.kind = kind;
  }
}

/**
 * Calls back once when the parallel threads have spent `limitMs` of processor time, or after the longest time. A limit
 * by the clock would refuse good schemas whenever the machine is busy. Node does not give the time of one thread; the
 * others have spent at least that of the process without the time in which this thread's event loop was active.
 */
function afterWork(limitMs: number, onLimit: () => void): NodeJS.Timeout {
  const startedAt = performance.now();
  const [processTime, loopTime] = [process.cpuUsage(), performance.eventLoopUtilization()];
  return setInterval(
    () => {
      const { user, system } = process.cpuUsage(processTime);
      const workedMs = (user + system) / 1_000 - performance.eventLoopUtilization(loopTime).active;
      if (workedMs >= limitMs || performance.now() - startedAt >= longestMs) onLimit();
    },
    Math.min(limitMs / 10, 1_000),
  );
}

/** The thread's next message. A limit or the signal terminates the thread. @param limitMs of processor time */
function hear(thread: Worker, limitMs: number, signal?: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const end = (error: unknown): void => {
      settle();
      reject(error);
      void thread.terminate();
    };
    const onAbort = (): void => end(signal?.reason);
    const onMessage = (message: unknown): void => {
      settle();
      resolve(message);
    };
    const onError = (error: Error & { code?: string }): void =>
      end(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new LimitReached('memory') : error);
    const onExit = (): void => end(new Error('the thread of schemas ended'));
    const timer = afterWork(limitMs, () => end(new LimitReached('time')));
    const settle = (): void => {
      clearInterval(timer);
      signal?.removeEventListener('abort', onAbort);
      thread.off('message', onMessage).off('error', onError).off('exit', onExit);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    thread.on('message', onMessage).on('error', onError).on('exit', onExit);
  });
}
