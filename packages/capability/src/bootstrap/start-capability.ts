/**
 * The engine of `capstan capability start SOURCE`: all eight steps of the bootstrap lifecycle, including the download.
 * A program of SOURCE, in any language, runs as a child process that this process registers and watches
 * (start-program.ts). So does a module, in another process of this command; or it runs in this process, and its steps 2
 * to 8 are those of any stand-alone instance.
 *
 * The package.json of SOURCE defines the start: the entry module of its folder exports `capability =
 * defineCapability({…})`, or a command starts the program.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { register } from 'node:module';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Registration } from '@capstan/core/contracts/capability';
import { Tags } from '@capstan/core/contracts/primitives';
import { isNotInstalled, MissingPartError } from '@capstan/core/errors/start-errors';
import { z } from 'zod';
import { type Capability, isCapability } from '../define-capability.ts';
import { findProgramFault } from '../lifecycle/prerequisites.ts';
import { type RunningInstance, startInstance } from '../lifecycle/start-instance.ts';
import { readSettings } from '../settings.ts';
import type { OwnModules } from './own-imports-hook.ts';
import { downloadSource } from './packages.ts';
import { isKept, keptCommand, type ProgramFacts, startKept, startProgram } from './start-program.ts';

/** The entry may be a `.ts` file in a checkout and a `.js` file after the build. */
function findEntry(folder: string, { main, capstan }: CapabilityManifest): string {
  const named = capstan?.entry ?? main ?? 'index.ts';
  for (const entry of [named, named.replace(/\.ts$/, '.js')]) {
    const file = resolve(folder, entry);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file;
  }
  throw new Error(
    `${folder} has no ${named}: a module is capstan.entry or main of its package.json, else index.ts; ` +
      'a program in another language is capstan.start, as in {"capstan": {"start": ["python3", "main.py"]}}',
  );
}

async function importEntry(entry: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(entry).href);
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw fault;
    throw new MissingPartError('A capability in TypeScript', 'tsx', fault);
  }
}

/** @throws Error when there is no entry, or the entry exports no capability */
async function loadCapability(folder: string, manifest: CapabilityManifest): Promise<Capability> {
  const entry = findEntry(folder, manifest);
  const exported: unknown = await importEntry(entry);
  const capability: unknown = Reflect.get(Object(exported), 'capability');
  if (isCapability(capability)) return capability;
  throw new Error(`${entry} does not export capability = defineCapability({…})`);
}

// The start settings in the package.json of a capability's folder.

const CapabilityManifest = z.object({
  main: z.string().optional(),
  capstan: z
    .object({
      /** A module that exports `capability`. */
      entry: z.string().optional(),
      /** Program and arguments of an instance in any language. The program serves at HOST and PORT until SIGTERM. */
      start: z.tuple([z.string().min(1)], z.string()).optional(),
      /** Facts that `/spec` does not hold; only used with `start`. */
      tags: Tags.default([]),
      max_concurrency: Registration.shape.max_concurrency,
      settle: Registration.shape.settle,
      warm_up: Registration.shape.warm_up,
      shared_with: Registration.shape.shared_with,
    })
    .optional(),
});
type CapabilityManifest = z.infer<typeof CapabilityManifest>;

/** Empty when there is no package.json. @throws Error that names the invalid fields */
function readManifest(folder: string): CapabilityManifest {
  const file = resolve(folder, 'package.json');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '{}';
  try {
    return CapabilityManifest.parse(JSON.parse(text));
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new Error(`${file} cannot be read: ${reason}`, { cause: error });
  }
}

/** The message of an error in one line. */
export function describeInLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text
    .split('\n')
    .map((line) => line.trim())
    .join(' ');
}

/** Why a folder cannot be started, by its package.json, entry and program; null: it can. */
export function findFolderFault(folder: string, environment: NodeJS.ProcessEnv): string | null {
  try {
    const manifest = readManifest(folder);
    const [program] = manifest.capstan?.start ?? [];
    if (program === undefined) return findEntry(folder, manifest) && null;
    return findProgramFault(program, environment, folder);
  } catch (error) {
    return describeInLine(error);
  }
}

interface FoundSource {
  readonly folder: string;
  readonly summary: string;
  /** How its program is started; absent: it is a module. */
  readonly program?: { readonly command: readonly [string, ...string[]]; readonly facts: ProgramFacts };
}

/** Installs a source that is no folder. @throws Error when it is neither, npm fails, or its package.json is invalid */
export async function findSource(
  source: string,
  cacheDir: string,
  signal?: AbortSignal,
): Promise<FoundSource> {
  const found = await downloadSource(source, cacheDir, signal);
  const { capstan } = readManifest(found.folder);
  if (capstan?.start === undefined) return found;
  return { ...found, program: { command: capstan.start, facts: capstan } };
}

interface BootstrapOptions {
  /** A folder or an npm package spec. */
  readonly source: string;
  /** Packages and prerequisites are installed below this folder. */
  readonly cacheDir: string;
  /** Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** The words of the command that serves a module in a process of its own; absent: it runs in this one. */
  readonly keeps?: readonly string[];
  print(line: string): void;
  readonly signal?: AbortSignal;
}

/** @throws Error when a step fails; everything started so far is stopped then */
export async function startCapability(options: BootstrapOptions): Promise<RunningInstance> {
  const { source, print, signal } = options;
  const cacheDir = resolve(options.cacheDir);
  const settings = readSettings(options.env);
  const { folder, summary } = await downloadSource(source, cacheDir, signal);
  if (!isKept(options.env ?? process.env)) print(`1/8 download: ${summary}`);
  const manifest = readManifest(folder);
  const { capstan } = manifest;
  const starting = { settings, cacheDir, print, ...(signal === undefined ? {} : { signal }) };
  const environment = options.env ?? process.env;
  if (capstan?.start !== undefined) {
    return startProgram({ folder, command: capstan.start, facts: capstan, environment }, starting);
  }
  if (options.keeps !== undefined) {
    const words = [...options.keeps, folder, '--cache-dir', cacheDir];
    return startProgram(keptCommand(words, environment), starting);
  }
  const capability = await loadCapability(folder, manifest);
  const hidden = /^[678]\/8 /;
  return isKept(environment)
    ? startKept(capability, environment, { ...starting, hidden })
    : startInstance(capability, starting);
}

const extension = extname(import.meta.url);

/** A process that runs from sources reads TypeScript already. If the loader is not installed, only JavaScript works. */
async function lendTypeScript(): Promise<void> {
  try {
    (await import('tsx/esm/api')).register();
  } catch (fault) {
    if (!isNotInstalled(fault)) throw fault;
  }
}

/**
 * Lets a capability anywhere on this machine import `@capstan/capability` and `zod` without installing them, and lets
 * its author write TypeScript, so a new folder can be started at once. Applies to the whole process.
 */
export async function lendOwnImports(): Promise<void> {
  if (extension !== '.ts') await lendTypeScript();
  const data: OwnModules = {
    '@capstan/capability': new URL(`../index${extension}`, import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  register(new URL(`./own-imports-hook${extension}`, import.meta.url), { data });
}
