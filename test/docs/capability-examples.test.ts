import { spawn, spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startCapability } from '@capstan/capability/bootstrap/start-capability';
import { checkCapability } from '@capstan/capability/conformance';
import { transform } from 'esbuild';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { choosePort } from '../../src/dev/ports.ts';
import { findCompiled } from '../support/compiled.ts';
import { waitFor } from '../support/wait.ts';
import { listCodeBlocks, readDocument, root } from './documents.ts';

const guide = 'docs/write-a-capability.md';
const example = 'docs/examples/word-count';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-docs-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function exec(endpoint: string, input: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify(input);
  return (await fetch(`${endpoint}/exec`, { method: 'POST', headers, body })).json();
}

async function failuresOf(endpoint: string) {
  return (await checkCapability(endpoint)).filter(({ ok }) => !ok);
}

function blocksOf(language: string): string[] {
  return listCodeBlocks(guide).flatMap((block) => (block.language === language ? [block.text] : []));
}

function blockOf(language: string): string {
  return blocksOf(language)[0] ?? '';
}

test('the guide shows the TypeScript example as it is in its file', () => {
  expect(blockOf('ts')).toBe(readDocument(`${example}/index.ts`));
  expect(JSON.parse(blockOf('json'))).toEqual(JSON.parse(readDocument(`${example}/package.json`)));
});

test('npm run check compiles the TypeScript example', () => {
  const { include } = JSON.parse(readDocument('tsconfig.json'));
  expect(include).toContain('docs/examples');
  expect(JSON.parse(readDocument('package.json')).scripts.check).toContain(
    '&& npm run --silent check:types &&',
  );
});

test('the TypeScript example keeps the contract and counts words', async () => {
  const media = join(folder, 'media');
  await mkdir(join(media, 'job_1'), { recursive: true });
  await writeFile(join(media, 'job_1', 'poem.txt'), 'the sea\n  the sun\n');
  const source = join(folder, 'word-count');
  const sdk = pathToFileURL(findCompiled(inject('packageFolder'), 'packages/capability/src/index.ts')).href;
  const text = readDocument(`${example}/index.ts`).replace("'@capstan/capability'", JSON.stringify(sdk));
  await mkdir(source);
  await symlink(`${root}node_modules`, join(source, 'node_modules')); // zod
  await writeFile(join(source, 'index.js'), (await transform(text, { loader: 'ts' })).code);
  await cp(`${root}${example}/package.json`, join(source, 'package.json'));
  const instance = await startCapability({
    source,
    cacheDir: join(folder, 'cache'),
    env: { PORT: '0', MEDIA_URL: `file://${media}` },
    print: () => undefined,
  });
  try {
    expect(await failuresOf(instance.endpoint)).toEqual([]);
    const output_path = 'media://job_1/words.json';
    const input = { text: { media_store_path: 'media://job_1/poem.txt' }, output_path };
    expect(await exec(instance.endpoint, input)).toEqual({ ok: true, output: { output_path, words: 4 } });
    expect(await readFile(join(media, 'job_1', 'words.json'), 'utf8')).toBe('{"words":4}');
  } finally {
    await instance.stop();
  }
});

const hasPython = spawnSync('python3', ['--version']).status === 0;

async function tryPython(name: string, text: string, answers: readonly [object, object][]): Promise<void> {
  const file = join(folder, name);
  await writeFile(file, text);
  const port = await choosePort([]);
  const endpoint = `http://127.0.0.1:${port}`;
  const child = spawn('python3', [file, String(port)], { stdio: 'ignore' });
  try {
    await waitFor('the example to answer', () =>
      fetch(`${endpoint}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    expect(await failuresOf(endpoint)).toEqual([]);
    for (const [input, output] of answers) {
      expect(await exec(endpoint, input)).toEqual({ ok: true, output });
    }
  } finally {
    child.kill('SIGKILL');
  }
}

test.skipIf(!hasPython)('the example without an SDK keeps the contract and answers', () =>
  tryPython('shout.py', blocksOf('python')[1] ?? '', [[{ text: 'ahoy' }, { text: 'AHOY' }]]),
);

test.each([
  ['README.md', 'python', 'sdk/python/samples/shout.py'],
  [guide, 'python', 'sdk/python/samples/shout.py'],
  ['docs/python.md', 'python', 'sdk/python/samples/shout.py'],
  [guide, 'go', 'sdk/go/examples/shout/main.go'],
])('the first example of %s in %s is the sample %s', (page, language, sample) => {
  const shown = listCodeBlocks(page).find((block) => block.language === language);
  expect(shown?.text).toBe(readDocument(sample));
});
