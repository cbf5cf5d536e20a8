/** Buildah without a daemon, a registry or namespaces of its own: images live in a folder, what runs is in a chroot. */
import { join } from 'node:path';
import { runCommand } from '../package/run-command.ts';

export interface Buildah {
  /** @returns what it printed */
  run(command: readonly string[], timeoutMs?: number): Promise<string>;
  /** The words before a command, for a caller that starts one that stays. */
  words(command: readonly string[]): readonly string[];
}

export function createBuildah(program: string, folder: string): Buildah {
  const storage = [
    '--root',
    join(folder, 'root'),
    '--runroot',
    join(folder, 'run'),
    '--storage-driver',
    'vfs',
  ];
  const words: Buildah['words'] = (command) => [program, ...storage, ...command];
  const environment = { ...process.env, BUILDAH_ISOLATION: 'chroot' };
  return {
    words,
    run: (command, timeoutMs = 1_800_000) =>
      runCommand(words(command), { cwd: folder, environment, timeoutMs }),
  };
}
