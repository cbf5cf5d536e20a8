/**
 * Development on one machine: `init` creates a first project from the package's template, `dev` runs all of Capstan
 * until Ctrl-C, and `doctor` reports missing requirements.
 */

import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { defaultCacheDir } from '@capstan/capability/lifecycle/start-instance';
import { InvalidArgumentError } from 'commander';
import type { Check } from '../../dev/doctor/check.ts';
import type { Stack } from '../../dev/stack.ts';
import { createApiClient } from '../client/api-client.ts';
import { dataFolder, stackEnvironment } from '../client/connection.ts';
import { linkToConsole } from '../client/session.ts';
import { local, parsed, usually } from '../command.ts';
import { describeError, exitCodes, UsageError } from '../errors.ts';
import { collectText } from '../input/arguments.ts';
import { createPrinter } from '../render/print.ts';
import { packageFolder, type Shell, stackSignal, untilAborted } from '../shell.ts';
import type { StartedFleet } from './instances/up.ts';

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new InvalidArgumentError('a port is a number from 0 (any free one) to 65535');
}

function describeStack({ info, file }: Stack, consoleUrl: string): string {
  return [
    '',
    'Capstan is ready.',
    `  API          ${info.api_url}`,
    `  API docs     ${info.api_url}/docs`,
    `  Console      ${consoleUrl}`,
    `  Temporal UI  ${info.temporal_ui_url ?? 'unknown'}`,
    `  Access       ${file} (holds the API key)`,
    'Ctrl-C stops everything.',
    '',
  ].join('\n');
}

/** A link to the console that signs in: once, within 10 minutes. */
function signedIn({ info }: Stack): Promise<string> {
  const client = createApiClient({ url: info.api_url, key: info.api_key, project: info.project_id });
  return linkToConsole(client);
}

interface DevGiven {
  readonly data: string | undefined;
  readonly port: number | undefined;
  readonly ephemeral: boolean;
  readonly samples: boolean | undefined;
  readonly watch: readonly string[] | undefined;
  readonly fleet: string | undefined;
  readonly json: boolean;
}

/** Undefined without a file. @throws UsageError when it has errors, which are shown */
async function prepareFleet(file: string | undefined, shell: Shell) {
  if (file === undefined) return undefined;
  const { readFleet, startFleet } = await import('./instances/up.ts');
  const print = createPrinter(shell);
  const given = { file, only: [] };
  const plan = readFleet(given, { environment: shell.environment, checks: false }, print);
  if (plan === null) throw new UsageError(`--fleet ${file} has errors`);
  const folders = { cacheDir: defaultCacheDir, stateDir: '.capstan/wrap' };
  return async ({ info }: Stack, json: boolean): Promise<StartedFleet> => {
    const environment = stackEnvironment(shell.environment, info);
    const fleet = await startFleet({ ...given, ...folders, plan, environment, json }, print);
    fleet.watch();
    return fleet;
  };
}

async function runDev(options: DevGiven, shell: Shell): Promise<void> {
  const { startStack } = await import('../../dev/stack.ts');
  const { createPrinter: createProgress } = await import('../../dev/progress.ts');
  let fleet: StartedFleet | undefined;
  const signal = stackSignal({ onForce: () => fleet?.kill() });
  const printer = createProgress(options.json ? process.stderr : process.stdout);
  try {
    const start = await prepareFleet(options.fleet, shell);
    const stack = await startStack({
      dataDir: dataFolder(options.data, process.env),
      ephemeral: options.ephemeral,
      samples: options.samples === true,
      watch: options.watch ?? [],
      port: options.port ?? null,
      environment: process.env,
      report: printer.report,
      signal,
    });
    console.log(options.json ? JSON.stringify(stack.info) : describeStack(stack, await signedIn(stack)));
    fleet = await start?.(stack, options.json).catch(async (error) => {
      await stack.stop();
      throw error;
    });
    await untilAborted(signal);
    printer.report({ part: 'capstan', status: 'note', detail: 'stopping', elapsedMs: 0 });
    await fleet?.stop();
    await stack.stop();
    // Files are still watched.
    if (fleet !== undefined) process.exit(exitCodes.ok);
  } catch (error) {
    if (signal.aborted) return;
    printer.close();
    const { exitCode } = describeError(error);
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = exitCode;
  } finally {
    printer.close();
  }
}

/** `capstan dev`: runs all of Capstan on this machine until Ctrl-C. */
export const registerDevCommand = local('dev', {
  about: 'start everything on this machine: Postgres, Temporal, server, worker, sample capabilities',
  options: {
    '--data <dir>': 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)',
    '--port <number>': parsed(
      'port of the API, an error if taken; 0: the last one, or a free one (default: the last one, or 7400, or a free one)',
      parsePort,
    ),
    '--ephemeral': usually('keep the data in a temporary folder and remove it at the end', false),
    '--no-samples': 'start no sample capabilities',
    '--watch <folder>': parsed(
      'start the capability in a folder too, or all in its folders, and again when files change (repeatable)',
      collectText,
    ),
    '--fleet <file>': 'start what a fleet file names too, as `capstan up FILE --watch` does',
    '--json': usually('print the content of stack.json as one line when ready', false),
  },
  run: runDev,
});

const marks = { ok: 'ok     ', warning: 'warning', missing: 'MISSING' } as const;

function print(checks: readonly Check[]): void {
  const width = Math.max(...checks.map(({ name }) => name.length));
  for (const { name, status, found, remedy } of checks) {
    console.log(`${marks[status]}  ${name.padEnd(width)}  ${found}`);
    if (remedy !== null) console.log(`${' '.repeat(9 + width)}  → ${remedy}`);
  }
}

/** `capstan doctor`: checks the requirements on this machine. */
export const registerDoctorCommand = local('doctor', {
  about: 'report missing parts of this machine and how to install them; exits 1 when Capstan cannot start',
  options: {
    '--data <dir>': 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)',
    '--fix': usually('register what Temporal lacks of search attributes', false),
    '--json': 'print the findings as JSON',
    '--env-file <file>': 'variables for what the environment leaves open',
  },
  run: async ({ data, envFile, fix: fixes, json }) => {
    const { runChecks } = await import('../../dev/doctor/run-checks.ts');
    const { findCacheDir } = await import('../../dev/temporal/source.ts');
    const { completeEnvironment } = await import('../own-process.ts');
    const environment = completeEnvironment(process.env, envFile);
    const cacheDir = findCacheDir(environment, homedir());
    const checks = await runChecks({ dataDir: dataFolder(data, environment), environment, cacheDir, fixes });
    if (json === true) console.log(JSON.stringify(checks, null, 2));
    else print(checks);
    if (checks.some(({ status }) => status === 'missing')) process.exitCode = 1;
  },
});

const template = join(packageFolder, 'templates/init');

/** npm packs no file of this name, so the template has it without the dot. */
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
  throw new UsageError(`nothing was written, because these files exist (--force replaces them):\n${named}`);
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

/** @returns false when the file exists, which is then kept */
async function writeIgnoreFile(folder: string): Promise<boolean> {
  const target = join(folder, ignoreFile);
  if (existsSync(target)) return false;
  await copyFile(join(template, ignoreFile.slice(1)), target);
  return true;
}

/** `capstan init`: copies a pipeline, two capabilities and mocks from the package. */
export const registerInitCommand = local('init', {
  about: 'write a first project: a pipeline, two capabilities, mocks',
  args: { '[folder]': usually('where; made if it is not there', '.') },
  options: { '--force': 'replace existing files' },
  run: async ({ folder, force }, shell) => {
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
    if (!hasWritten) remark(`${join(folder, ignoreFile)} already exists: see that it names .capstan/`);
    lines(['Next (its README.md explains more):', ...describeNext(folder).map((line) => `  ${line}`)]);
  },
});
