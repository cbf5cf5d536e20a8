/** The linter's rules of our own, each run over a file that breaks it. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterEach, expect, test } from 'vitest';

const biome = resolve('node_modules/.bin/biome');
const folders: string[] = [];

afterEach(async () => {
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
});

/** @returns the findings of the linter about these files under the project's own configuration; '' = nothing */
async function lint(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-lint-'));
  folders.push(folder);
  const { vcs: _, ...config } = JSON.parse(await readFile('biome.json', 'utf8'));
  await writeFile(join(folder, 'biome.json'), JSON.stringify(config));
  await cp('scripts/lint', join(folder, 'scripts/lint'), { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    await mkdir(join(folder, dirname(file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return new Promise((done) => {
    execFile(biome, ['lint', '--error-on-warnings', '.'], { cwd: folder }, (error, _stdout, stderr) =>
      done(error === null ? '' : stderr),
    );
  });
}

test('a literal spread into a literal is refused, a value or a condition is not', async () => {
  expect(await lint({ 'src/a.ts': 'export const a = (b: object) => ({ ...{ c: 1 }, ...b });\n' })).toContain(
    'Write the members out',
  );
  expect(
    await lint({
      'src/a.ts': 'export const a = (b: object, c: boolean) => ({ ...b, ...(c ? { c } : {}) });\n',
    }),
  ).toBe('');
});

test.each(['db.transaction()', 'db.commit()', 'db.rollback()'])('%s by hand is refused', async (call) => {
  const text = `export const a = (db: Record<string, () => void>) => ${call};\n`;
  expect(await lint({ 'src/a.ts': text })).toContain('Use transaction(async (trx) => …)');
});

test('a transaction of a callback is not refused', async () => {
  const text =
    'export const a = (db: { transaction(f: () => void): void }) => db.transaction(() => undefined);\n';
  expect(await lint({ 'src/a.ts': text })).toBe('');
});

test('files that import one another are refused, types too', async () => {
  const values = {
    'src/a.ts': "import { b } from './b.ts';\n\nexport const a = (): number => b();\n",
    'src/b.ts': "import { a } from './a.ts';\n\nexport const b = (): number => a();\n",
  };
  expect(await lint(values)).toContain('This import is part of a cycle');
  const types = {
    'src/a.ts': "import type { B } from './b.ts';\n\nexport interface A {\n  readonly b: B;\n}\n",
    'src/b.ts': "import type { A } from './a.ts';\n\nexport interface B {\n  readonly a: A | null;\n}\n",
  };
  expect(await lint(types)).toContain('This import is part of a cycle');
});

test.each([
  ['a function', 'export function f(a: 1, b: 1, c: 1, d: 1): number {\n  return a + b + c + d;\n}\n'],
  ['an arrow', 'export const f = (a: 1, b: 1, c: 1, d: 1): number => a + b + c + d;\n'],
  ['a type of functions', 'export type F = (a: 1, b: 1, c: 1, d: 1) => void;\n'],
])('%s has at most three parameters', async (_, text) => {
  expect(await lint({ 'src/a.ts': text })).toContain('4 parameters, but only 3');
  expect(await lint({ 'src/a.ts': text.replace(', d: 1', '').replace(' + d', '') })).toBe('');
  expect(await lint({ 'test/a.ts': text })).toBe('');
});

test('an exception that is not needed fails', async () => {
  const unneeded =
    '// biome-ignore lint/complexity/useMaxParams: two\nexport const f = (a: 1): number => a;\n';
  expect(await lint({ 'src/a.ts': unneeded })).toContain('suppression');
});
