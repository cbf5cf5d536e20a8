/** Steps 2 and 3 of the bootstrap: what an instance needs on its machine before it can work. */

export interface PrerequisiteHost {
  /** Where an install hook may put things; shared by all capabilities of this machine. */
  readonly cacheDir: string;
  /** Aborts when the instance is told to stop while it installs. */
  readonly signal: AbortSignal;
}

export interface Prerequisite {
  readonly name: string;
  /** What was found (a path, a version); null when it is missing. */
  check(host: PrerequisiteHost): Promise<string | null>;
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
