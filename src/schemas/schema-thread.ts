/** The thread that compiles strangers' schemas first, where it may be ended at any moment. Answers one by one. */
import { parentPort } from 'node:worker_threads';
import type { JsonObject } from '../contracts/primitives.ts';
import { createSchemaCompiler, SchemaRefused } from './schema-compiler.ts';

const compiler = createSchemaCompiler();

/** Why the schema cannot be used, or null. */
function findFault(schema: JsonObject): string | null {
  try {
    compiler.compile(schema);
    return null;
  } catch (error) {
    if (error instanceof SchemaRefused) return error.message;
    throw error;
  }
}

// The first compilation loads and warms what all need; it counts as starting.
findFault({ type: 'object', properties: { a: { type: 'string', pattern: '^a' } } });
parentPort?.on('message', (schema: JsonObject) => parentPort?.postMessage(findFault(schema)));
parentPort?.postMessage('ready');
