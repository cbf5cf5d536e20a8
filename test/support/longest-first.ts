/**
 * Files of one project come one after the other: a worker, and the modules that it has loaded, is kept only while the
 * next file in line is of its project. Those that take longest come first, so that no worker is left with them at the
 * end; but those that share a server and a worker come last, because these cost time also while nobody uses them.
 */
import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const order: readonly string[] = ['faults', 'stack', 'data', 'pure'];

function sharesCapstan(file: string): boolean {
  return readFileSync(file, 'utf8').includes('/shared-capstan.ts');
}

export class ProjectByProject extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const sharing = new Set(sorted.filter(({ moduleId }) => sharesCapstan(moduleId)));
    const inOrder = [...sorted.filter((file) => !sharing.has(file)), ...sharing];
    return order.flatMap((name) => inOrder.filter(({ project }) => project.name === name));
  }
}
