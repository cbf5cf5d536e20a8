/** Tests of pure rules, one after the other in one worker, over source that has its mutants inside. */
import { defineConfig } from 'vitest/config';
import type { TestSpecification } from 'vitest/node';
import { readPlan } from './plan.ts';

const { code, tests } = readPlan();

class InOrder {
  shard<T>(files: T): T {
    return files;
  }

  sort(files: TestSpecification[]): TestSpecification[] {
    return files.toSorted((one, other) => tests.indexOf(one.moduleId) - tests.indexOf(other.moduleId));
  }
}

export default defineConfig({
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      transform: (_, id) => code[id],
    },
  ],
  test: {
    include: [...tests],
    runner: 'scripts/mutants/runner.ts',
    setupFiles: [],
    isolate: false,
    maxWorkers: 1,
    fileParallelism: false,
    // A test continues for as long as there are mutants that it must try.
    testTimeout: 7_200_000,
    sequence: { sequencer: InOrder },
    dangerouslyIgnoreUnhandledErrors: true,
    reporters: ['dot'],
  },
});
