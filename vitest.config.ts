import { defineConfig } from 'vitest/config';
import { Interleaved } from './test/support/interleaved.ts';

const common = { testTimeout: 30_000, hookTimeout: 120_000 };

/** Files share a worker and the modules that it has loaded: a third of their time would be spent on loading. */
const shared = { ...common, isolate: false, setupFiles: ['test/support/watch-failures.ts'] };
const alone = { ...common, isolate: true, setupFiles: ['test/support/watch-failures.ts'] };

function filesOf(...folders: readonly string[]): string[] {
  return folders.map((folder) => `${folder}/**/*.test.ts`);
}

const faults = [
  ...filesOf('test/dev', 'test/scenarios'),
  'test/e2e/{killed-*,rolling-restart,demo,demo-*}.test.ts',
];
const stack = filesOf('test/conformance', 'test/docs', 'test/e2e', 'test/unsupported', 'test/workflows');
const data = filesOf('test/api', 'test/db', 'test/services');

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    // Half of them wait for processes and clocks while the others compute.
    maxWorkers: 3,
    sequence: { sequencer: Interleaved },
    projects: [
      {
        test: {
          ...shared,
          name: 'pure',
          include: filesOf('test', 'capabilities'),
          exclude: [...data, ...stack, ...faults],
        },
      },
      { test: { ...shared, name: 'data', include: data } },
      { test: { ...alone, name: 'stack', include: stack, exclude: faults } },
      { test: { ...alone, name: 'faults', include: faults } },
    ],
  },
});
