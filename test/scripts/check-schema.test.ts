/** The check of functions and migrations against the last release, on a repository of its own. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, test } from 'vitest';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'capstan-schema-'));
  for (const folder of ['sql/triggers', 'migrations'])
    mkdirSync(join(root, 'src/db', folder), { recursive: true });
  write('migrations/0001-tables.sql', 'create table one ();');
  write('migrations/0002-note.ts', 'one');
  write('sql/claims.sql', '-- schema 1\none');
  write('sql/triggers/touch.sql', '-- schema 3\none');
  git('init', '--quiet');
  commit();
});
afterEach(() => rmSync(root, { recursive: true }));

function git(...args: string[]): void {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.org'];
  const { status, stderr } = spawnSync('git', [...identity, ...args], { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
}

function write(name: string, text: string): void {
  writeFileSync(join(root, 'src/db', name), text);
}

function commit(): void {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'a commit');
}

function check() {
  const { status, stderr } = spawnSync('node', ['scripts/check-schema.mjs', root], { encoding: 'utf8' });
  return { status, told: stderr.trim().split('\n').filter(Boolean) };
}

it('reports nothing before the first release', () => {
  write('sql/claims.sql', '-- schema 1\ntwo');
  write('migrations/0001-tables.sql', 'create table two ();');
  expect(check()).toEqual({ status: 0, told: [] });
});

it('lets a function change under a number that the release does not know', () => {
  git('tag', 'v1.0.0');
  write('sql/claims.sql', '-- schema 4\ntwo');
  write('sql/new.sql', '-- schema 5\none');
  write('migrations/0005-more.ts', 'one');
  rmSync(join(root, 'src/db/sql/triggers/touch.sql'));
  expect(check()).toEqual({ status: 0, told: [] });
  commit();
  expect(check()).toEqual({ status: 0, told: [] });
});

test.each([
  ['a function that keeps its number', 'sql/claims.sql', '-- schema 1\ntwo', 'begin it with "-- schema 4"'],
  [
    'a function with a number that the release knows',
    'sql/claims.sql',
    '-- schema 3\ntwo',
    'begin it with "-- schema 4"',
  ],
  ['one of a trigger', 'sql/triggers/touch.sql', '-- schema 3\ntwo', 'begin it with "-- schema 4"'],
  ['a new one', 'sql/new.sql', '-- schema 2\none', 'begin it with "-- schema 4"'],
  ['a migration', 'migrations/0002-note.ts', 'two', 'is applied already'],
  ['the first migration', 'migrations/0001-tables.sql', 'create table two ();', 'is applied already'],
])('refuses %s, committed or not', (_, file, text, message) => {
  git('tag', 'v1.0.0');
  write(file, text);
  expect(check()).toEqual({ status: 1, told: [expect.stringContaining(`src/db/${file} `)] });
  expect(check().told[0]).toContain(message);
  commit();
  expect(check().status).toBe(1);
});

it('refuses a migration that is gone, and compares with the newest release', () => {
  git('tag', 'v1.0.0');
  write('sql/claims.sql', '-- schema 4\ntwo');
  commit();
  git('tag', 'v1.1.0');
  expect(check().status).toBe(0);
  write('sql/claims.sql', '-- schema 4\nthree');
  rmSync(join(root, 'src/db/migrations/0002-note.ts'));
  expect(check().told).toEqual([
    expect.stringContaining('0002-note.ts is applied already'),
    expect.stringContaining('claims.sql has changed since: begin it with "-- schema 5"'),
  ]);
});
