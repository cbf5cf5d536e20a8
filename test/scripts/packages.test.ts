import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { sourceOf } from '../../scripts/package/source-of.ts';
import { readTests } from '../../scripts/structure/source.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const readManifest = (folder: string): Manifest => JSON.parse(read(`${folder}package.json`));

const folders = readdirSync(new URL('../../packages', import.meta.url)).map((name) => `packages/${name}/`);
const root = readManifest('');

test.each(folders)('%s has a README of at most 40 lines, its name and the version of all', (folder) => {
  const { name, version } = readManifest(folder);
  const lines = read(`${folder}README.md`).trimEnd().split('\n');
  expect(lines[0]).toBe(`# ${name}`);
  expect(lines.length).toBeLessThanOrEqual(40);
  expect({ name, version }).toEqual({
    name: `@capstan/${folder.split('/')[1]}`,
    version: root.version,
  });
});

test.each(folders)('the root, which contains %s when it is published, brings what it needs', (folder) => {
  if (folder === 'packages/console/' || folder === 'packages/client/') return;
  const needed = Object.entries(readManifest(folder).dependencies ?? {}).filter(
    ([name]) => sourceOf(name) === null,
  );
  expect(root.dependencies).toMatchObject(Object.fromEntries(needed));
});

test('packages name one version of each package of others', () => {
  const versions = new Map<string, Set<string>>();
  for (const folder of ['', ...folders]) {
    const { dependencies, optionalDependencies, devDependencies } = readManifest(folder);
    const all = Object.entries({ ...devDependencies, ...optionalDependencies, ...dependencies });
    for (const [name, version] of all) versions.set(name, (versions.get(name) ?? new Set()).add(version));
  }
  expect([...versions].filter(([, each]) => each.size > 1)).toEqual([]);
});

test.each([
  ['@capstan/core/run/machine', 'packages/core/src/run/machine.ts'],
  ['@capstan/capability', 'packages/capability/src/index.ts'],
  ['@temporalio/client', null],
  ['zod', null],
])('finds the source of %s', (specifier, source) => {
  expect(sourceOf(specifier)).toBe(source);
});

/** Folders of tests that belong to no folder of sources. */
const ofNoFolder =
  /^(?:test\/(?:capabilities|conformance|docs|e2e|examples|library-internals|scenarios|scripts)|packages\/console\/test)\//;

test('a folder of tests has the name of a folder or a file of sources', () => {
  const folders = new Set(
    readTests()
      .filter(({ file }) => !ofNoFolder.test(file))
      .map(({ file }) => dirname(file).replace(/^test|(?<=^packages\/[^/]+\/)test/, 'src')),
  );
  const exists = (path: string): boolean => existsSync(new URL(`../../${path}`, import.meta.url));
  expect([...folders].filter((folder) => !exists(folder) && !exists(`${folder}.ts`))).toEqual([]);
});
