/**
 * In place of src/schemas/schema-thread-entry.ts (vitest.config.ts): a thread out of the compiled package starts with
 * a third of the processor time that one through the TypeScript loader takes, and a hundred are started.
 */
import { pathToFileURL } from 'node:url';
import { inject } from 'vitest';
import { findCompiled } from './compiled.ts';

export const schemaThreadEntry = pathToFileURL(
  findCompiled(inject('packageFolder'), 'src/schemas/schema-thread.ts'),
);
