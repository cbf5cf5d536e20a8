import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { ProjectByProject } from './test/support/project-by-project.ts';

const testTimeout = 180_000;
const hookTimeout = 120_000;

const setupFiles = ['test/support/watch-failures.ts'];

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

const alias = [
  // As a capability's folder imports the SDK; outside of tests, `capstan capability start` sees to it.
  { find: 'capstan/capability', replacement: pathOf('src/capability/index.ts') },
  { find: './schema-thread-entry.ts', replacement: pathOf('test/support/schema-thread-entry.ts') },
];

/** Files share a worker and the modules that it has loaded: a third of their time would be spent on loading. */
const shared = { testTimeout, hookTimeout, setupFiles, alias, isolate: false };

function filesOf(...folders: readonly string[]): string[] {
  return folders.map((folder) => `${folder}/**/*.test.ts`);
}

/** Again and again, or minutes of it: for `npm run test:long`. Each kind of death is once among `faults` too. */
const long = [
  'test/e2e/{killed-engine,killed-escalation,killed-inline,rolling-migration,rolling-restart}.test.ts',
  'test/e2e/shipped.test.ts',
  'test/services/registry/outage.test.ts',
];
const faults = [
  ...filesOf('test/dev', 'test/scenarios'),
  'test/e2e/{killed-*,inline-control,keyed-call,temporal-away,demo,demo-*}.test.ts',
  'test/api/silent-database.test.ts',
];
const stack = filesOf(
  'test/conformance',
  'test/console/pages',
  'test/docs',
  'test/e2e',
  'test/unsupported',
  'test/workflows',
);
const data = filesOf('test/api', 'test/db', 'test/services');

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    // Half of them wait for processes and clocks while the others compute.
    maxWorkers: 3,
    sequence: { sequencer: ProjectByProject },
    // A project has a transformer of its own; without this each would transform all of src.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          ...shared,
          name: 'pure',
          include: filesOf('test', 'capabilities'),
          exclude: [...data, ...stack, ...faults, ...long],
        },
      },
      { test: { ...shared, name: 'data', include: data, exclude: [...faults, ...long] } },
      { test: { ...shared, name: 'stack', include: stack, exclude: [...faults, ...long] } },
      { test: { ...shared, name: 'faults', include: faults, exclude: long } },
      { test: { ...shared, name: 'long', include: long } },
    ],
  },
});
