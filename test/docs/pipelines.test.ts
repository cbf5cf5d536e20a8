import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { readMocks } from '@capstan/core/mock-run/read-mocks';
import { expect, test } from 'vitest';
import { listCodeBlocks, listDocuments, readDocument, root } from './documents.ts';

interface Example {
  readonly name: string;
  readonly text: string;
  readonly type: string;
  /** Capabilities that its mocks stand for. */
  readonly mocked?: readonly string[];
}

function isDefinition(text: string): boolean {
  return /^\s*"?pipeline"?:/m.test(text) && /"?steps"?:/.test(text);
}

/** Definitions in documents, those inside shell scripts included. */
const inDocuments = listDocuments().flatMap((file) =>
  listCodeBlocks(file).flatMap(({ language, text }): Example[] => {
    if (language === 'sh') {
      return [...text.matchAll(/<<'YAML'\n([\s\S]*?)^YAML$/gm)].map(([, yaml = ''], at) => ({
        name: `${file} (script ${at + 1})`,
        text: yaml,
        type: 'application/yaml',
      }));
    }
    const isExample = (language === 'yaml' || language === 'json') && isDefinition(text);
    return isExample ? [{ name: `${file} (${language})`, text, type: `application/${language}` }] : [];
  }),
);

function mockedBy(file: string): readonly string[] {
  if (!existsSync(`${root}${file}`)) return [];
  return Object.keys(readMocks(readDocument(file), 'application/yaml').mocks?.capabilities ?? {});
}

const inFolders = readdirSync(`${root}examples`, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\/pipeline\.(json|yaml)$/.test(name) && !name.startsWith('broken/'))
  .map((name) => ({
    name: `examples/${name}`,
    text: readDocument(`examples/${name}`),
    type: name.endsWith('.json') ? 'application/json' : 'application/yaml',
    mocked: mockedBy(`examples/${dirname(name)}/mocks.yaml`),
  }));

test('the documents and the examples folder hold definitions to check', () => {
  expect(inDocuments.length).toBeGreaterThanOrEqual(4);
  expect(inFolders.length).toBeGreaterThanOrEqual(2);
});

test.each([...inDocuments, ...inFolders])('$name has no finding', ({ text, type, mocked = [] }: Example) => {
  const names =
    'concat audio-mix thumbnail word-count picture sound loudness transcript audio-clip model.editor';
  const standIns =
    'film-start film-result agent model.fast model.capable model.small model.medium model.large remove-background enlarge backdrop';
  const samples = new Set([...`${names} ${standIns}`.split(' '), ...mocked]);
  const options = { knownCapabilities: samples, strict: true };
  expect(readDefinition({ text, contentType: type }, options).findings).toEqual([]);
});

test.each([
  ['yaml', 'pipeline.yaml'],
  ['json', 'job.json'],
])('the first pipeline of the README is the example that it runs: %s', (language, file) => {
  const shown = listCodeBlocks('README.md').find((block) => block.language === language);
  expect(readDocument(`examples/teaser/${file}`)).toBe(shown?.text);
});
