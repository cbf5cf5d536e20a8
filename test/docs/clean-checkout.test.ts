import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { root } from './documents.ts';

test.each(['build/lib/capstan/__init__.py', 'build/bdist.linux-x86_64/x', 'capstan.egg-info/PKG-INFO'])(
  'git ignores what an installation of the Python SDK leaves: %s',
  (file) => {
    const path = `sdk/python/${file}`;
    const ignored = execFileSync('git', ['check-ignore', '--no-index', path], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(ignored.trim()).toBe(path);
  },
);
