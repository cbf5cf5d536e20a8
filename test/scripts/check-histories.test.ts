/** The check that no recorded history is changed, on repositories of its own. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'capstan-histories-'));
  mkdirSync(join(root, 'test/histories'), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true }));

function git(...args: string[]): void {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.org'];
  const { status, stderr } = spawnSync('git', [...identity, ...args], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
}

function write(name: string, content: string): void {
  writeFileSync(join(root, 'test/histories', `${name}.v1.json`), content);
}

function commit(): void {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'a commit');
}

function check() {
  const { status, stderr } = spawnSync('node', ['scripts/check-histories.mjs', root], { encoding: 'utf8' });
  return { status, told: stderr.trim().split('\n').filter(Boolean) };
}

it('lets histories be added, and recorded again after they were removed', () => {
  git('init', '--quiet');
  write('chain', 'one');
  commit();
  write('parallel', 'two');
  expect(check()).toEqual({ status: 0, told: [] });
  rmSync(join(root, 'test/histories/chain.v1.json'));
  commit();
  write('chain', 'three');
  commit();
  expect(check()).toEqual({ status: 0, told: [] });
});

it('refuses one that was changed, committed or not', () => {
  git('init', '--quiet');
  write('chain', 'one');
  write('parallel', 'one');
  commit();
  write('chain', 'two');
  expect(check()).toEqual({ status: 1, told: [expect.stringContaining('chain.v1.json is not what')] });
  commit();
  expect(check()).toEqual({ status: 1, told: [expect.stringContaining('chain.v1.json was changed')] });
});

it('reports nothing where there is no git', () => {
  write('chain', 'one');
  expect(check()).toEqual({ status: 0, told: [] });
});
