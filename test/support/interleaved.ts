/**
 * Files that mostly wait (for processes, and for clocks) spread evenly among those that compute, so that neither the
 * processors nor the clocks are waited for by all workers at once.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const waiting: ReadonlySet<string> = new Set(['stack', 'faults']);

/** Where a file comes in the whole, when all of its kind are spread evenly: 0 to 1. */
function spread(specs: readonly TestSpecification[]): { spec: TestSpecification; place: number }[] {
  return specs.map((spec, at) => ({ spec, place: at / specs.length }));
}

export class Interleaved extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isWaiting = ({ project }: TestSpecification): boolean => waiting.has(project.name);
    return [...spread(sorted.filter(isWaiting)), ...spread(sorted.filter((spec) => !isWaiting(spec)))]
      .sort((one, other) => one.place - other.place)
      .map(({ spec }) => spec);
  }
}
