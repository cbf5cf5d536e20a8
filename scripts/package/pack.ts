/** The package as npm would publish it, and installations of it elsewhere. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from './run-command.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));

/** @param folder where the tarball goes @returns its path */
export async function packTarball(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await runCommand(['npm', 'pack', '--silent', '--pack-destination', folder], { cwd: checkout });
  const [tarball] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error(`npm pack left no tarball in ${folder}`);
  return join(folder, tarball);
}

/** @param folder empty, or not there yet */
export async function installTarball(tarball: string, folder: string, flags: readonly string[] = []) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "private": true }\n');
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  await runCommand(['npm', 'install', ...quiet, ...flags, tarball], { cwd: folder });
}

/** Where `npx capstan` would lead, without npm around it: signals reach the program itself. */
export function installedProgram(folder: string): string {
  return join(folder, 'node_modules/capstan/bin/capstan.mjs');
}
