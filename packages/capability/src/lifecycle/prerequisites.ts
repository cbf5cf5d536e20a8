/** Steps 2 and 3 of the bootstrap: the programs and models that an instance needs on its machine. */

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The path of a program, as a process in the folder finds it; null: there is none that can be executed. */
export function findExecutable(
  program: string,
  { PATH = '/usr/bin:/bin' }: NodeJS.ProcessEnv,
  folder = process.cwd(),
): string | null {
  const places = program.includes('/') ? [''] : PATH.split(delimiter);
  const paths = places.map((place) => resolve(folder, place, program));
  return paths.find(isExecutable) ?? null;
}

/** As `findExecutable`, in words. */
export function findProgramFault(
  program: string,
  environment: NodeJS.ProcessEnv,
  folder: string,
): string | null {
  if (findExecutable(program, environment, folder) !== null) return null;
  return program.includes('/')
    ? `${resolve(folder, program)} is no program that can be executed`
    : `no program ${program} is on the PATH`;
}

/** The argument of a prerequisite's `check` and `install`. */
export interface PrerequisiteHost {
  /** The folder for installed files, shared by all capabilities of this machine. */
  readonly cacheDir: string;
  /** Aborts when the instance is stopped during the installation. */
  readonly signal: AbortSignal;
}

/** A program, model or file that an instance needs on its machine. */
export interface Prerequisite {
  /** Shown in the output of the start. */
  readonly name: string;
  /** @returns a short description of the finding (a path, a version); null when it is missing */
  check(host: PrerequisiteHost): Promise<string | null>;
  /**
   * Installs it when `check` returned null; `check` then runs again. Without this hook the start fails.
   * @throws Error to make the start fail
   */
  install?(host: PrerequisiteHost): Promise<void>;
}

export interface CheckedPrerequisites {
  readonly missing: readonly Prerequisite[];
  readonly summary: string;
}

export async function checkPrerequisites(
  prerequisites: readonly Prerequisite[],
  host: PrerequisiteHost,
): Promise<CheckedPrerequisites> {
  const missing: Prerequisite[] = [];
  const found: string[] = [];
  for (const prerequisite of prerequisites) {
    const what = await prerequisite.check(host);
    if (what === null) missing.push(prerequisite);
    found.push(`${prerequisite.name} ${what ?? 'is missing'}`);
  }
  return { missing, summary: found.join(', ') || 'none' };
}

/** @throws Error when one cannot be installed, or is still missing afterwards */
export async function installPrerequisites(
  missing: readonly Prerequisite[],
  host: PrerequisiteHost,
): Promise<string> {
  const installed: string[] = [];
  for (const prerequisite of missing) {
    const { name } = prerequisite;
    if (prerequisite.install === undefined)
      throw new Error(`${name} is missing and has to be installed by hand`);
    await prerequisite.install(host);
    const what = await prerequisite.check(host);
    if (what === null) throw new Error(`${name} was installed, but is still missing`);
    installed.push(`${name} ${what}`);
  }
  return installed.join(', ') || 'nothing is missing';
}
