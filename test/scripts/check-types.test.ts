/** What the check of types keeps between two runs hides no error. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

const script = resolve('scripts/check-types.mjs');
const compilerOptions = { strict: true, types: [], lib: ['es2023'], skipLibCheck: true, module: 'nodenext' };
const settings = { compilerOptions, include: ['*.ts'] };
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'capstan-types-'));
  mkdirSync(join(root, 'node_modules'));
  symlinkSync(resolve('node_modules/typescript-7'), join(root, 'node_modules/typescript-7'));
  write({ 'tsconfig.json': JSON.stringify(settings), '.gitignore': 'node_modules\n' });
  write({ 'kept.ts': 'declare global { interface Kept {} } export {};' });
  spawnSync('git', ['init', '--quiet'], { cwd: root });
});

afterEach(() => rmSync(root, { recursive: true }));

function write(files: Record<string, string>): void {
  for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text);
}

/** @returns the findings of the compiler about the files; '' = nothing */
function check(): string {
  const { status, stdout } = spawnSync('node', [script, 'sources'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? '' : stdout;
}

test('an error is found each time, also in a file that did not change', () => {
  write({ 'a.ts': 'export const a = 1;', 'b.ts': "import { a } from './a.js'; export const b: number = a;" });
  expect(check()).toBe('');
  write({ 'a.ts': "export const a = '1';" });
  for (const _ of [1, 2]) expect(check()).toContain('b.ts(1,42): error TS2322');
});

test('a global that its file declares no longer is missed by others', () => {
  write({
    'a.ts': 'declare global { interface Array<T> { own: T } } export {};',
    'b.ts': 'export const b = [1].own;',
  });
  expect(check()).toBe('');
  write({ 'a.ts': 'export {};' });
  for (const _ of [1, 2]) expect(check()).toContain('b.ts(1,22): error TS2339');
});
