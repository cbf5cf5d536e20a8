/** `capstan init`: a pipeline, two capabilities and mocks, copied from the files of the package. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { packageFolder } from '../package-folder.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';

const template = join(packageFolder, 'templates/init');

/** npm packs no file of this name: in the template it stands without its dot. */
const ignoreFile = '.gitignore';

/** Relative paths, sorted. */
async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((file) => relative(folder, join(file.parentPath, file.name))).sort();
}

function refuseOverwriting(target: string, files: readonly string[]): void {
  const there = files.filter((file) => existsSync(join(target, file)));
  if (there.length === 0) return;
  const named = there.map((file) => `  ${join(target, file)}`).join('\n');
  throw new UsageError(
    `nothing was written, as these files are there already (--force replaces them):\n${named}`,
  );
}

function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function describeNext(folder: string): string[] {
  const isCheckout = extname(import.meta.url) === '.ts';
  return [
    ...(isCheckout ? [`alias capstan="node ${quote(join(packageFolder, 'bin/capstan.mjs'))}"`] : []),
    ...(resolve(folder) === process.cwd() ? [] : [`cd ${quote(folder)}`]),
    'capstan run pipeline.yaml --mock mocks.yaml                  # a test, without a server',
    'capstan dev --no-samples --watch shout --watch count-words   # everything, on this machine',
    'capstan run pipeline.yaml --job job.json --watch             # meanwhile, in another terminal',
  ];
}

/** @returns false where there is one, which is left as it is */
async function writeIgnoreFile(folder: string): Promise<boolean> {
  const target = join(folder, ignoreFile);
  if (existsSync(target)) return false;
  await copyFile(join(template, ignoreFile.slice(1)), target);
  return true;
}

async function init(folder: string, { force }: { force?: boolean }, shell: Shell): Promise<void> {
  const files = (await listFiles(template)).filter((file) => `.${file}` !== ignoreFile);
  if (force !== true) refuseOverwriting(folder, files);
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await copyFile(join(template, file), join(folder, file));
  }
  const hasWritten = await writeIgnoreFile(folder);
  const written = hasWritten ? [ignoreFile, ...files] : files;
  const { lines, remark } = createPrinter(shell);
  lines([`${written.length} files in ${resolve(folder)}:`, ...written.map((file) => `  ${file}`)]);
  if (!hasWritten) remark(`${join(folder, ignoreFile)} is there already: see that it names .capstan/`);
  lines(['Next (README.md there says more):', ...describeNext(folder).map((line) => `  ${line}`)]);
}

export function registerInitCommand(program: Command, shell: Shell): void {
  program
    .command('init')
    .description('write a first project: a pipeline, two capabilities, mocks')
    .argument('[folder]', 'where; made if it is not there', '.')
    .option('--force', 'replace files that are there')
    .action((folder: string, options: { force?: boolean }) => init(folder, options, shell));
}
