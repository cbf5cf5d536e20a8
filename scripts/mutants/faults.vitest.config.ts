/** Tests over a database that is there already, one file after the other. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['scripts/mutants/faults-setup.ts'],
    setupFiles: ['test/support/watch-failures.ts'],
    alias: [
      {
        find: 'capstan/capability',
        replacement: fileURLToPath(new URL('../../src/capability/index.ts', import.meta.url)),
      },
    ],
    isolate: false,
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
