/**
 * Tests whether an untrusted schema can be used without risk to this process. Schemas that pass the cheap checks and
 * are not simple are compiled in a thread with limits. Only simple schemas, and light ones that compile there, are ever
 * compiled here (foreign-check.ts).
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../contracts/primitives.ts';
import { findSchemaFault, isSimpleSchema } from '../foreign-schema.ts';
import { createSchemaThread, LimitReached, type ThreadLimits } from './schema-threads.ts';

export interface SchemaVetter {
  /**
   * @returns why the schema cannot be used, or null
   * @throws Error when the thread cannot be started or is lost, the reason of `signal` when it aborts
   */
  vet(schema: JsonObject, signal?: AbortSignal): Promise<string | null>;
  close(): Promise<void>;
}

export type SchemaVetterOptions = Partial<ThreadLimits>;

type VetterAnswer = { readonly fault: string | null; readonly isFinal: boolean };

const maxVerdicts = 1_000;
/** A refusal for time or memory may be due to what else the process does; it is retried after this. */
const doubtMs = 300_000;

export function createSchemaVetter(options: SchemaVetterOptions = {}): SchemaVetter {
  const limits: ThreadLimits = { timeLimitMs: 1_000, heapLimitMb: 128, ...options };
  const { ask, close } = createSchemaThread(limits);
  const verdicts = new LRUCache<string, VetterAnswer>({ max: maxVerdicts });

  const judge = async (schema: JsonObject, name: string, signal?: AbortSignal): Promise<VetterAnswer> => {
    try {
      return { fault: (await ask({ kind: 'vet', name, schema }, signal)).refused, isFinal: true };
    } catch (error) {
      if (!(error instanceof LimitReached)) throw error;
      const limit = error.kind === 'time' ? `${limits.timeLimitMs} ms` : `${limits.heapLimitMb} MiB`;
      return { fault: `takes more than ${limit} to compile`, isFinal: false };
    }
  };

  return {
    vet: async (schema, signal) => {
      const fault = findSchemaFault(schema);
      if (fault !== null || isSimpleSchema(schema)) return fault;
      const name = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
      const verdict = verdicts.get(name) ?? (await judge(schema, name, signal));
      if (!verdicts.has(name)) verdicts.set(name, verdict, verdict.isFinal ? {} : { ttl: doubtMs });
      return verdict.fault;
    },
    close,
  };
}
