/**
 * Files of one project come one after the other: a worker, and the modules that it has loaded, is kept only while the
 * next file in line is of its project. Those that take longest come first, so that no worker is left with them at the end.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const order: readonly string[] = ['faults', 'stack', 'data', 'pure'];

export class ProjectByProject extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return order.flatMap((name) => sorted.filter(({ project }) => project.name === name));
  }
}
