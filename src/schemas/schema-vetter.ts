/**
 * Tests whether an untrusted schema can be used without risk to this process. Schemas that pass the cheap checks and
 * are not simple are compiled in a thread with limits on time and memory, one at a time. Only simple schemas, and those
 * that compile there, are ever compiled here. A thread that reaches a limit is terminated; the next schema gets a new
 * one. Many processes see simple schemas alone and never start a thread, which takes a quarter of a second.
 */
import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../contracts/primitives.ts';
import { findSchemaFault, isSimpleSchema } from '../core/foreign-schema.ts';

/** The entry file of the vetting thread: the source file, or its compiled form. */
const schemaThreadEntry = new URL(
  import.meta.url.endsWith('.ts') ? './schema-thread.source.mjs' : './schema-thread.js',
  import.meta.url,
);

export interface SchemaVetter {
  /**
   * @returns why the schema cannot be used, or null
   * @throws Error when the thread cannot be started or is lost, the reason of `signal` when it aborts
   */
  vet(schema: JsonObject, signal?: AbortSignal): Promise<string | null>;
  close(): Promise<void>;
}

export interface SchemaVetterOptions {
  /** Processor time for one schema. */
  readonly timeLimitMs?: number;
  readonly heapLimitMb?: number;
}

type VetterAnswer = { readonly fault: string | null; readonly isFinal: boolean };

/** For the start of the thread, and for a schema on a machine that gives it no processor time. */
const longestMs = 30_000;
/** Less than the main thread's, so that a schema that compiles in the thread does not overflow here. */
const stackLimitMb = 0.8;
const maxVerdicts = 1_000;
/** A refusal for time or memory may be due to what else the process does; it is retried after this. */
const doubtMs = 300_000;

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

interface SchemaJudge {
  judge(schema: JsonObject, signal?: AbortSignal): Promise<VetterAnswer>;
  close(): Promise<void>;
}

/** Vets schemas in a thread, one after the other. */
function createSchemaJudge({ timeLimitMs, heapLimitMb }: Required<SchemaVetterOptions>): SchemaJudge {
  let thread: Worker | null = null;
  let last: Promise<unknown> = Promise.resolve();

  const start = async (signal?: AbortSignal): Promise<Worker> => {
    const started = await startThread(heapLimitMb, signal);
    started.once('exit', () => {
      if (thread === started) thread = null;
    });
    return started;
  };

  const judge = async (schema: JsonObject, signal?: AbortSignal): Promise<VetterAnswer> => {
    signal?.throwIfAborted();
    thread ??= await start(signal);
    const answer = hear(thread, timeLimitMs, signal);
    thread.postMessage(schema);
    try {
      return { fault: (await answer) as string | null, isFinal: true };
    } catch (error) {
      thread = null;
      if (!(error instanceof LimitReached)) throw error;
      const limit = error.kind === 'time' ? `${timeLimitMs} ms` : `${heapLimitMb} MiB`;
      return { fault: `takes more than ${limit} to compile`, isFinal: false };
    }
  };

  return {
    judge: (schema, signal) => {
      const verdict = last.then(() => judge(schema, signal));
      last = verdict.catch(() => undefined);
      return verdict;
    },
    close: async () => {
      await thread?.terminate();
    },
  };
}

export function createSchemaVetter(options: SchemaVetterOptions = {}): SchemaVetter {
  const { timeLimitMs = 1_000, heapLimitMb = 128 } = options;
  const { judge, close } = createSchemaJudge({ timeLimitMs, heapLimitMb });
  const verdicts = new LRUCache<string, VetterAnswer>({ max: maxVerdicts });
  return {
    vet: async (schema, signal) => {
      const fault = findSchemaFault(schema);
      if (fault !== null || isSimpleSchema(schema)) return fault;
      const key = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
      const verdict = verdicts.get(key) ?? (await judge(schema, signal));
      if (!verdicts.has(key)) verdicts.set(key, verdict, verdict.isFinal ? {} : { ttl: doubtMs });
      return verdict.fault;
    },
    close,
  };
}

class LimitReached extends Error {
  readonly kind: 'time' | 'memory';
  constructor(kind: 'time' | 'memory') {
    super(`limit of ${kind} reached`);
    this.kind = kind;
  }
}

/**
 * Calls back once when the threads beside this one have spent `limitMs` of processor time, or after the longest time. A
 * limit by the clock would refuse good schemas whenever the machine is busy. Node does not tell the time of one thread;
 * the others have spent at least that of the process without the time in which this thread's event loop was active.
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
    const onExit = (): void => end(new Error('the thread that vets schemas ended'));
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
