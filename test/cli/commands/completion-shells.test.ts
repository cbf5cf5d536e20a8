/** Completion as zsh and fish ask for it, where they are installed: the printed script in the shell itself. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, expect, inject, test } from 'vitest';
import { aFolder } from '../../../packages/capability/test/support/folders.ts';

const limitMs = 60_000;
let folder: string;

beforeEach(async () => {
  folder = await aFolder();
  await mkdir(join(folder, 'bin'));
  await symlink(join(inject('packageFolder'), 'bin/capstan.mjs'), join(folder, 'bin/capstan'));
  await writeFile(join(folder, 'pipeline.yaml'), '');
});

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ['--version']).status === 0;
}

async function runShell(shell: string, words: readonly string[]): Promise<string[]> {
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}`, TERM: 'xterm' };
  const { stdout } = await promisify(execFile)(shell, words, { cwd: folder, env, timeout: limitMs });
  return stdout.split('\n').filter((line) => line !== '');
}

const typed = [
  'capstan run --pri',
  'capstan run --priority b',
  'capstan run --priority=s',
  'capstan keys r',
  'capstan run pipe',
  'capstan run $(touch oops) --pri',
];

test.runIf(isInstalled('zsh'))(
  'zsh proposes commands, options, values and files, and runs nothing',
  async () => {
    const script = fileURLToPath(new URL('../support/zsh-candidates.zsh', import.meta.url));
    expect(await runShell('zsh', ['-f', script, ...typed])).toEqual([
      typed[0],
      '<--priority>',
      typed[1],
      '<batch>',
      typed[2],
      '<--priority=standard>',
      typed[3],
      '<rotate>',
      '<revoke>',
      typed[4],
      '<pipeline.yaml>',
      typed[5],
      '<--priority>',
    ]);
    expect(await readdir(folder)).toEqual(['bin', 'pipeline.yaml']);
  },
);

test.runIf(isInstalled('fish'))(
  'fish proposes commands, options, values and files, and runs nothing',
  async () => {
    const asked = typed.map((line) => `complete -C '${line}'`).join('; ');
    const lines = await runShell('fish', ['-N', '-c', `capstan completion fish | source; ${asked}`]);
    expect(lines.map((line) => line.split('\t')[0])).toEqual([
      '--priority',
      'batch',
      '--priority=standard',
      'revoke',
      'rotate',
      'pipeline.yaml',
      '--priority',
    ]);
    expect(await readdir(folder)).toEqual(['bin', 'pipeline.yaml']);
  },
);
