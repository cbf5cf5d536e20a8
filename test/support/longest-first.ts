/**
 * Starts the longest test files first, so that no worker is left with one at the end: tests of whole processes, which
 * mostly wait, then those of single ones, of the database, and the rest, which only compute.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const heights: readonly RegExp[] = [
  /\/test\/(console\/pages|dev|scenarios)\//,
  /\/test\/(conformance|docs|e2e|examples|unsupported|workflows)\//,
  /\/test\/(capabilities|capability|cli|client|clients|scripts|wrap)\//,
  /\/test\/(api|db|services)\//,
];

function heightOf({ moduleId }: TestSpecification): number {
  const height = heights.findIndex((folders) => folders.test(moduleId));
  return height === -1 ? heights.length : height;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => heightOf(one) - heightOf(other));
  }
}
