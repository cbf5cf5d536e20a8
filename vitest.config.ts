import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { compiledFiles, compiledSources } from './test/support/compiled-sources.ts';
import { isLong } from './test/support/long.ts';
import { LongestFirst } from './test/support/longest-first.ts';

/** Files of which `npm test` has nothing; the others mark their long tests with `isLong`. */
const longFiles = [
  'packages/console/test/pages/{learning,outage,reading,states,tasks}.test.ts',
  'test/e2e/{demo-learning,inline-control,media-in-s3,metrics,paid-streams,payload-keys}.test.ts',
  'test/e2e/{restored,shipped,temporal-away,wrap}.test.ts',
  'test/e2e/killed-{capability,engine,erasure,escalation,in-line,inline,instances,keyed-calls,while-waiting}.test.ts',
  'test/e2e/{rolling-migration,rolling-restart}.test.ts',
  'test/scenarios/attacks.test.ts',
  'test/use-cases/registry/outage.test.ts',
];

/** Where a report for programs goes, besides what is printed: scripts/steady.ts. */
const report = process.env.TEST_REPORT;

export default defineConfig({
  plugins: [compiledSources(fileURLToPath(new URL('.', import.meta.url)))],
  test: {
    include: ['{test,capabilities,packages/*/test}/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(isLong ? [] : longFiles)],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/watch-failures.ts'],
    sequence: { sequencer: LongestFirst },
    // Most tests of whole processes wait for them while others compute.
    maxWorkers: Number(process.env.CAPSTAN_TEST_WORKERS ?? 3),
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
    // Deadlines bound a hang and prove nothing: a machine may be slow, and do something else as well.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Files share a worker and the modules that it has loaded.
    isolate: false,
    execArgv: ['--enable-source-maps'],
    server: { deps: { external: [compiledFiles] } },
  },
});
