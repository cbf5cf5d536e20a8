import { createRequire } from 'node:module';

/** Of Capstan, as its package says. */
export const { version } = createRequire(import.meta.url)('capstan/package.json') as { version: string };
