import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { compiledFiles, compiledSources } from './test/support/compiled-sources.ts';
import { LongestFirst } from './test/support/longest-first.ts';

/** Again and again, or minutes of it: for `npm run test:long`. Each kind of death happens once in the suite too. */
const long = [
  'test/e2e/{killed-engine,killed-escalation,killed-inline,rolling-migration,rolling-restart}.test.ts',
  'test/e2e/shipped.test.ts',
  'test/services/registry/outage.test.ts',
];

/** Where a report for programs goes, besides what is printed: scripts/steady.ts. */
const report = process.env.TEST_REPORT;

/** Projects inherit nothing: what is set at the root, such as globalSetup, would be done once for each. */
function project(name: string, { include, exclude = [] }: { include: string[]; exclude?: string[] }) {
  return {
    plugins: [compiledSources(fileURLToPath(new URL('.', import.meta.url)))],
    test: {
      name,
      include,
      exclude,
      setupFiles: ['test/support/watch-failures.ts'],
      // Deadlines bound a hang and prove nothing: a machine may be slow, and do something else as well.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      // Files share a worker and the modules that it has loaded.
      isolate: false,
      execArgv: ['--enable-source-maps'],
      server: { deps: { external: [compiledFiles] } },
    },
  };
}

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    sequence: { sequencer: LongestFirst },
    // Most tests of whole processes wait for them while others compute.
    maxWorkers: Number(process.env.CAPSTAN_TEST_WORKERS ?? 3),
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
    projects: [
      project('suite', { include: ['{test,capabilities}/**/*.test.ts'], exclude: long }),
      project('long', { include: long }),
    ],
  },
});
