/** Tests over an existing database, and over sources that are compiled as those of `npm test` are. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { compiledFiles, compiledSources } from '../../test/support/compiled-sources.ts';

export default defineConfig({
  plugins: [compiledSources(fileURLToPath(new URL('../..', import.meta.url)))],
  test: {
    globalSetup: ['scripts/mutants/faults-setup.ts'],
    setupFiles: ['test/support/watch-failures.ts'],
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    server: { deps: { external: [compiledFiles] } },
  },
});
