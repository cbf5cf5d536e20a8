/** Steps 2 and 3 of the bootstrap: the programs and models that an instance needs on its machine. */

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
