/** What a path may start with, and the fields below the roots whose shape Capstan owns. */
export const rootNames = ['job', 'steps', 'run', 'item', 'index'] as const;
export type RootName = (typeof rootNames)[number];

/** `steps.<id>.<field>` */
export const stepFields = ['output', 'status', 'error', 'cost_usd'] as const;

/** `run.<field>` */
export const runFields = ['id', 'job_id', 'attempt', 'pipeline', 'version'] as const;

export function isRootName(name: string): name is RootName {
  return (rootNames as readonly string[]).includes(name);
}

/** What a path in a skill's template may start with: the failing input, and the named groups of the error. */
export const skillRootNames = ['input', 'match'] as const;
export type SkillRootName = (typeof skillRootNames)[number];
