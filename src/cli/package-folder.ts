/** Where this package is, from its sources as from what is compiled: files that are not code stand beside both. */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';

export const packageFolder = dirname(createRequire(import.meta.url).resolve('capstan/package.json'));
