/**
 * Starts the longest test files first, so that no worker is left with one at the end: tests of whole processes, which
 * mostly wait, then those of single ones, of the database, and the rest, which only compute.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** @throws Error for a folder that has moved: its tests would come last, and nothing would fail */
function toHeight(folders: readonly string[]): readonly string[] {
  return folders.map((folder) => {
    if (!existsSync(`${root}${folder}`))
      throw new Error(`the order of test files names ${folder}, which is gone`);
    return `${root}${folder}/`;
  });
}

const heights = [
  ['packages/console/test/pages', 'test/dev', 'test/scenarios'],
  ['test/conformance', 'test/docs', 'test/e2e', 'test/examples', 'test/workflows'],
  ['packages/capability/test', 'packages/client/test', 'packages/wrap/test'],
  ['test/box', 'test/capabilities', 'test/cli', 'test/clients', 'test/scripts'],
  ['test/api', 'test/db', 'test/parts', 'test/use-cases'],
].map(toHeight);

function heightOf({ moduleId }: TestSpecification): number {
  const height = heights.findIndex((folders) => folders.some((folder) => moduleId.startsWith(folder)));
  return height === -1 ? heights.length : height;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => heightOf(one) - heightOf(other));
  }
}
