/** The thread that compiles strangers' schemas first, where it may be ended at any moment. Answers one by one. */
import { parentPort } from 'node:worker_threads';
import type { JsonObject } from '../contracts/primitives.ts';
import { createSchemaCompiler, findRefusal } from './schema-compiler.ts';

const compiler = createSchemaCompiler();

// The first compilation loads and warms what all need; it counts as starting.
findRefusal(compiler, { type: 'object', properties: { a: { type: 'string', pattern: '^a' } } });
parentPort?.on('message', (schema: JsonObject) => parentPort?.postMessage(findRefusal(compiler, schema)));
parentPort?.postMessage('ready');
