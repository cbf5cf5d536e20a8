/**
 * The thread that first compiles untrusted schemas, where it may be terminated at any moment. Answers one request at a
 * time.
 */
import { parentPort } from 'node:worker_threads';
import type { JsonObject } from '../contracts/primitives.ts';
import { createSchemaCompiler, findRefusal } from './schema-compiler.ts';

const compiler = createSchemaCompiler();

// The first compilation loads and warms shared code; it counts as start-up.
findRefusal(compiler, { type: 'object', properties: { a: { type: 'string', pattern: '^a' } } });
parentPort?.on('message', (schema: JsonObject) => parentPort?.postMessage(findRefusal(compiler, schema)));
parentPort?.postMessage('ready');
