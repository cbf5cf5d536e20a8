/** The packages as npm would publish them, and installations of them elsewhere. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { layOut } from './publishable.ts';
import { runCommand } from './run-command.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));

/** `capstan` is the root of the checkout and contains what it uses of the packages; it is packed first, which builds all. */
export const published: readonly string[] = ['capstan', 'capability', 'client'];

async function pack(source: string, folder: string): Promise<string> {
  const command = ['npm', 'pack', '--silent', '--pack-destination', folder];
  const printed = await runCommand(command, { cwd: source });
  const name = printed.trim().split('\n').at(-1) ?? '';
  if (!name.endsWith('.tgz')) throw new Error(`npm pack left no tarball in ${folder}:\n${printed}`);
  return join(folder, name);
}

async function packOf(name: string, folder: string): Promise<string> {
  if (name === 'capstan') return pack(checkout, folder);
  const target = await mkdtemp(join(tmpdir(), 'capstan-pack-'));
  try {
    await layOut(checkout, name, target);
    return await pack(target, folder);
  } finally {
    await rm(target, { recursive: true, force: true });
  }
}

/** @param folder where the tarballs go @param names of `published` @returns their paths, in the order of the names */
export async function packTarballs(folder: string, names = published): Promise<string[]> {
  const target = resolve(folder);
  await mkdir(target, { recursive: true });
  if (!names.includes('capstan')) await runCommand(['npm', 'run', '--silent', 'prepack'], { cwd: checkout });
  const paths = new Map<string, string>();
  for (const name of published.filter((each) => names.includes(each)))
    paths.set(name, await packOf(name, target));
  return names.map((name) => paths.get(name) as string);
}

/** The whole of Capstan. @param folder where the tarball goes @returns its path */
export async function packTarball(folder: string): Promise<string> {
  const [tarball] = await packTarballs(folder, ['capstan']);
  return tarball as string;
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
