import { expect, test } from 'vitest';
import { listDocuments, readDocument } from './documents.ts';

const { scripts } = JSON.parse(readDocument('package.json')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

test('every npm script that a document names is there', () => {
  const named = listDocuments().flatMap((file) =>
    [...readDocument(file).matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => ({ file, name })),
  );
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter(({ name }) => scripts[name] === undefined)).toEqual([]);
});

test('every bench is described', () => {
  const benches = Object.keys(scripts).filter((name) => name.startsWith('bench:'));
  expect(benches.filter((name) => !readDocument('bench/README.md').includes(`npm run ${name}`))).toEqual([]);
});
