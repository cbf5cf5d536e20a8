/**
 * A thread that compiles untrusted schemas, and checks values by them, where it may be terminated at any moment.
 * Answers one request at a time.
 */
import { parentPort } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { proposeRepairs } from '../repair/propose-repairs.ts';
import { type CompiledSchema, createSchemaCompiler, findRefusal, SchemaRefused } from './schema-compiler.ts';
import type { CheckInThread, ThreadAnswer, ThreadRequest } from './schema-threads.ts';

const compiler = createSchemaCompiler();
/** Each may have some megabytes. */
const compiled = new LRUCache<string, CompiledSchema>({ max: 20 });

function compile({ name, schema, formats }: CheckInThread): CompiledSchema {
  const known = compiled.get(name);
  if (known !== undefined) return known;
  const made = compiler.compile(schema, formats);
  compiled.set(name, made);
  return made;
}

function find(check: CompiledSchema, { asked, value, schema }: CheckInThread): ThreadAnswer['found'] {
  switch (asked) {
    case 'errors':
      return check(value);
    case 'findings':
      return check.find(value);
    case 'repairs':
      return proposeRepairs({ schema, input: value, errorsOf: check.find });
  }
}

function answer(request: ThreadRequest): ThreadAnswer {
  if (request.kind === 'vet') return { refused: findRefusal(compiler, request.schema) };
  try {
    const check = compile(request);
    return { refused: null, found: find(check, request) };
  } catch (error) {
    if (error instanceof SchemaRefused) return { refused: error.message };
    throw error;
  }
}

// The first compilation loads and warms shared code; it counts as start-up.
findRefusal(compiler, { type: 'object', properties: { a: { type: 'string', pattern: '^a' } } });
parentPort?.on('message', (request: ThreadRequest) => parentPort?.postMessage(answer(request)));
parentPort?.postMessage('ready');
