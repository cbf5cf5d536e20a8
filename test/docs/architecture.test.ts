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

const folderName = /(?<![\w/.])[a-z-]+\/(?![\w.])/g;

function foldersIn(text: string): string[] {
  return (text.match(folderName) ?? []).map((name) => name.slice(0, -1));
}

/**
 * The drawing of folders. A line begins with one folder, or with some of the same parent; folders that its description
 * mentions are inside the last of them. A line that is indented once more belongs to the last folder above it.
 */
function readDrawing(): string[] {
  const lines = (listCodeBlocks(page)[0]?.text ?? '').split('\n').filter((line) => /^[├└│]/.test(line));
  let parent = '';
  return lines.flatMap((line) => {
    const [, first = '', description = ''] = /^[├└│─ ]+((?:[a-z-]+\/(?:, )?)*)(.*)$/.exec(line) ?? [];
    const isTop = /^[├└]/.test(line);
    const folders = foldersIn(first).map((name) => (isTop ? `src/${name}` : `${parent}/${name}`));
    const last = folders.at(-1);
    if (last === undefined) return [];
    if (isTop) parent = last;
    return [...folders, ...foldersIn(description).map((name) => `${last}/${name}`)];
  });
}

test('the drawing names every folder of src, two levels deep', () => {
  const named = readDrawing();
  expect(foldersOfSrc.filter((folder) => !named.includes(folder))).toEqual([]);
});

test('every folder that the drawing names exists', () => {
  expect(readDrawing().filter((folder) => !isThere(folder))).toEqual([]);
});

/** With or without `src/`; of a path with a placeholder, the folder. */
function isThere(path: string): boolean {
  const known = path.includes('<') ? dirname(path.slice(0, path.indexOf('<') + 1)) : path;
  return [known, `src/${known}`].some((candidate) => existsSync(`${root}${candidate}`));
}

test('every path that the page mentions exists', () => {
  const prose = readDocument(page).replaceAll(/^```[\s\S]*?^```$/gm, '');
  const roots = new Set([...listFolders('.'), ...listFolders('src')]);
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
