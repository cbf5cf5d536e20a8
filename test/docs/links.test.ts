import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { listDocuments, readDocument, root } from './documents.ts';

/** As GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function linksOf(text: string): string[] {
  return [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, target = '']) => target,
  );
}

function isBroken(file: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const linked = path === '' ? file : join(dirname(file), path);
  if (!existsSync(join(root, linked))) return true;
  return anchor !== undefined && !anchorsOf(readDocument(linked)).includes(anchor);
}

test('every relative link leads to a file that exists, and to a heading in it', () => {
  const broken = listDocuments().flatMap((file) =>
    linksOf(readDocument(file))
      .filter((target) => !/^https?:/.test(target) && isBroken(file, target))
      .map((target) => `${file} → ${target}`),
  );
  expect(broken).toEqual([]);
});

test('every guide and every reference page is reached from the README', () => {
  const reached = new Set(['README.md']);
  for (const file of reached) {
    for (const target of linksOf(readDocument(file))) {
      const linked = join(dirname(file), target.split('#')[0] ?? '');
      if (linked.endsWith('.md') && existsSync(join(root, linked))) reached.add(linked);
    }
  }
  expect(listDocuments().filter((file) => !reached.has(file))).toEqual([]);
});
