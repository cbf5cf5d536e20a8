/** The permissions that a person has through groups: in each project, the union of what the groups grant there. */
import { roleScopes } from '../contracts/roles.ts';
import type { Grant, GroupRules } from '../contracts/sign-in.ts';

/** Projects as the rules name them, in the order of the rules, so equal groups give equal grants. */
export function grantsOf(rules: GroupRules, groups: readonly string[]): readonly Grant[] {
  return Object.entries(rules)
    .filter(([group]) => groups.includes(group))
    .map(([, { role, scopes, projects }]) => ({
      scopes: [...new Set([...(role === undefined ? [] : roleScopes[role]), ...scopes])].sort(),
      projects: [...new Set(projects)].sort(),
    }));
}

export const everyProject = '*';

/** Whether a grant covers all projects. */
export function holdsEveryProject(grants: readonly Grant[]): boolean {
  return grants.some(({ projects }) => projects.includes(everyProject));
}

/** @param all every project, for a grant that covers all */
export function scopesByProject(
  grants: readonly Grant[],
  all: readonly string[],
): ReadonlyMap<string, ReadonlySet<Grant['scopes'][number]>> {
  const found = new Map<string, Set<Grant['scopes'][number]>>();
  for (const { scopes, projects } of grants) {
    for (const project of projects.includes(everyProject) ? all : projects) {
      const held = found.get(project) ?? new Set();
      for (const scope of scopes) held.add(scope);
      found.set(project, held);
    }
  }
  return found;
}
