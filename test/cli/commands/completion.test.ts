/** Completion as bash asks for it: the printed script is read, and its function called on words as bash splits them. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, inject, it } from 'vitest';
import { aFolder } from '../../../packages/capability/test/support/folders.ts';
import { runCapstan } from '../../../src/cli/program.ts';
import { aShell } from '../support/shell.ts';

let folder: string;

beforeEach(async () => {
  folder = await aFolder();
  await mkdir(join(folder, 'bin'));
  await symlink(join(inject('packageFolder'), 'bin/capstan.mjs'), join(folder, 'bin/capstan'));
});

/**
 * The script is read in this process and asks the program, as a start of the program takes longest.
 *
 * @param words after `capstan`; the last is the one under the cursor
 */
async function complete(words: readonly string[]): Promise<string[]> {
  const script = `
    eval "$SCRIPT"
    COMP_WORDS=(capstan "$@"); COMP_CWORD=$#
    $(complete -p capstan | sed -E 's/.*-F ([^ ]+).*/\\1/')
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const SCRIPT = await ask('bash');
  const env = { ...process.env, SCRIPT, PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
  const { stdout } = await promisify(execFile)('bash', ['-c', script, 'bash', ...words], {
    cwd: folder,
    env,
  });
  return stdout.split('\n').filter((line) => line !== '');
}

async function ask(...words: readonly string[]): Promise<string> {
  const { shell, seen } = aShell();
  await runCapstan(['completion', ...words], shell);
  return seen.stdout;
}

describe('in bash', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['commands inside of commands', ['keys', 'r'], ['rotate', 'revoke']],
    ['values behind =, which bash takes for a word', ['run', '--priority', '=', 's'], ['standard']],
    ['values right behind =', ['run', '--priority', '='], ['interactive', 'standard', 'batch']],
    ['nothing where a file is meant, so that bash names files', ['run', ''], []],
  ])('proposes %s', async (_, words, expected) => {
    expect(await complete(words)).toEqual(expected);
  });

  // What the program answers to the words that the script passes on.
  it.each<[string, readonly string[], readonly string[]]>([
    ['commands', ['cap'], ['capabilities', 'capability']],
    ['options, far from where they are declared', ['run', 'pipeline.yaml', '--pri'], ['--priority']],
    ['values of an option', ['run', '--priority', ''], ['interactive', 'standard', 'batch']],
    ['values of a short option', ['run', '-p', 'b'], ['batch']],
    ['values of an argument', ['demo', 'l'], ['learning']],
    ['nothing where an option has any value', ['run', '--budget', ''], []],
  ])('is answered with %s', async (_, words, expected) => {
    const answer = await ask('bash', '--', ...words);
    expect(answer.split('\n').filter((line) => line !== '')).toEqual(expected);
  });

  it('runs nothing of what is typed', async () => {
    expect(await complete(['run', '$(touch oops)', '`touch oops`', '--pri'])).toEqual(['--priority']);
    expect(await readdir(folder)).toEqual(['bin']);
  });
});

describe('for the other shells', () => {
  it('describes each candidate', async () => {
    expect(await ask('zsh', '--', 'cancel')).toBe(
      'cancel:cancel a run and abort its running calls, or all runs that filters choose\n',
    );
    expect(await ask('fish', '--', 'cancel')).toBe(
      'cancel\tcancel a run and abort its running calls, or all runs that filters choose\n',
    );
  });

  it('keeps the option before its value', async () => {
    expect(await ask('zsh', '--', 'run', '--priority=b')).toBe('--priority=batch\n');
  });

  it('prints a script for each', async () => {
    for (const name of ['bash', 'zsh', 'fish'])
      expect(await ask(name)).toContain(`capstan completion ${name} --`);
  });
});
