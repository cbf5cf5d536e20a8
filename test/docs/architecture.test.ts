/** ARCHITECTURE.md against the tree as it is. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { listCodeBlocks, readDocument, root } from './documents.ts';

const page = 'ARCHITECTURE.md';

function listFolders(folder: string): string[] {
  return readdirSync(`${root}${folder}`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && hasFiles(`${folder}/${entry.name}`))
    .map(({ name }) => name);
}

/** A folder whose files have moved away stays behind in a checkout, empty. */
function hasFiles(folder: string): boolean {
  return readdirSync(`${root}${folder}`, { withFileTypes: true, recursive: true }).some((entry) =>
    entry.isFile(),
  );
}

const foldersOfSrc = listFolders('src').flatMap((folder) => [
  `src/${folder}`,
  ...listFolders(`src/${folder}`).map((inner) => `src/${folder}/${inner}`),
]);

const foldersOfPackages = listFolders('packages')
  .filter((name) => name !== 'console')
  .flatMap((name) => listFolders(`packages/${name}/src`).map((inner) => `packages/${name}/src/${inner}`));

const folderName = /(?<![\w/.])[a-z-]+\/(?![\w.])/g;

function foldersIn(text: string): string[] {
  return (text.match(folderName) ?? []).map((name) => name.slice(0, -1));
}

/**
 * The drawing of folders. A line begins with one folder, or with some of the same parent; folders that its description
 * mentions are inside the last of them. A line that is indented once more belongs to the last folder above it.
 */
function readDrawing(): string[] {
  const lines = (listCodeBlocks(page)[0]?.text ?? '').split('\n');
  let top = '';
  let parent = '';
  return lines.flatMap((line) => {
    if (!/^[├└│]/.test(line)) {
      top = /^(src|packages)\/ /.exec(line)?.[1] ?? '';
      return [];
    }
    const [, first = '', description = ''] = /^[├└│─ ]+((?:[a-z-]+\/(?:, )?)*)(.*)$/.exec(line) ?? [];
    const isTop = /^[├└]/.test(line);
    const toFolder = (name: string): string => (top === 'src' ? `src/${name}` : `packages/${name}/src`);
    const folders = foldersIn(first).map((name) => (isTop ? toFolder(name) : `${parent}/${name}`));
    const last = folders.at(-1);
    if (last === undefined) return [];
    if (isTop) parent = last;
    return [...folders, ...foldersIn(description).map((name) => `${last}/${name}`)];
  });
}

test('the drawing names every folder of src, two levels deep, and those of packages', () => {
  const named = readDrawing();
  expect([...foldersOfSrc, ...foldersOfPackages].filter((folder) => !named.includes(folder))).toEqual([]);
});

test('every folder that the drawing names exists', () => {
  expect(readDrawing().filter((folder) => !isThere(folder))).toEqual([]);
});

/** With or without `src/`, or in a package; of a path with a placeholder, the folder. */
function isThere(path: string): boolean {
  const known = path.includes('<') ? dirname(path.slice(0, path.indexOf('<') + 1)) : path;
  const [first = '', ...rest] = known.split('/');
  const inPackages = [`packages/${first}/src/${rest.join('/')}`, `packages/core/src/${known}`];
  return [known, `src/${known}`, ...inPackages].some((candidate) => existsSync(`${root}${candidate}`));
}

test('every path that the page mentions exists', () => {
  const prose = readDocument(page).replaceAll(/^```[\s\S]*?^```$/gm, '');
  const ofCore = ['contracts', 'definitions', 'errors', 'mock-run', 'schemas'];
  const roots = new Set([...['.', 'src', 'packages'].flatMap(listFolders), ...ofCore]);
  const paths = [...prose.matchAll(/`([\w<>./-]+)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => path.includes('/') && roots.has(path.split('/')[0] ?? ''));
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
});

test('every invariant of a batch names existing tests', () => {
  const rows = [...readDocument(page).matchAll(/^\| (B\d+) \|.*\|(.*)\|$/gm)];
  expect(rows.map(([, number]) => number)).toEqual(rows.map((_, at) => `B${at + 1}`));
  expect(rows.length).toBeGreaterThan(10);
  const missing = rows.flatMap(([, number, tests = '']) => {
    const files = [...tests.matchAll(/\]\(([^)]+)\)([^[]*)/g)];
    const named = files.flatMap(([, file = '', titles = '']) =>
      [...titles.matchAll(/`([^`]+)`/g)].map(([, title = '']) => ({ file, title })),
    );
    const lost = named.filter(({ file, title }) => !readDocument(file).includes(`'${title}'`));
    return named.length === 0 ? [`${number} names no test`] : lost.map(({ title }) => `${number}: ${title}`);
  });
  expect(missing).toEqual([]);
});
