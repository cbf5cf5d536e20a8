/**
 * Whose an instance is. It serves the project whose key registered it, and those with which it is shared; for every
 * other project it does not exist. The same rule in SQL is `serves` (db/sql/registry.sql). The fleet view keeps an
 * index by it, so that a call of a project costs nothing for the instances of others.
 */
import type { SharedWith } from '../contracts/capability.ts';

export interface Ownership {
  readonly owner_project: string;
  readonly shared_with: Readonly<SharedWith>;
}

/** The projects that it serves, each once. */
function servedProjects({ owner_project, shared_with }: Ownership): 'all' | readonly string[] {
  return shared_with === 'all' ? 'all' : [...new Set([owner_project, ...shared_with])];
}

export function serves({ owner_project, shared_with }: Ownership, project: string): boolean {
  return owner_project === project || shared_with === 'all' || shared_with.includes(project);
}

/** With whom a project sees an instance shared: its owner in full, others themselves alone. */
export function shownShares({ owner_project, shared_with }: Ownership, viewer: string): SharedWith {
  if (shared_with === 'all') return 'all';
  return owner_project === viewer ? [...shared_with] : shared_with.filter((project) => project === viewer);
}

/** The instances of one name, by the projects that they serve. A fleet is made when a project asks for it. */
export class NamedFleet<Instance, Fleet> {
  /** All of them. */
  readonly instances: Instance[] = [];
  readonly #make: (instances: readonly Instance[]) => Fleet;
  readonly #ofAll: Instance[] = [];
  readonly #ofSome = new Map<string, Instance[]>();
  readonly #made = new Map<string, Fleet>();
  #common: Fleet | null = null;

  constructor(make: (instances: readonly Instance[]) => Fleet) {
    this.#make = make;
  }

  add(instance: Instance, ownership: Ownership): void {
    this.instances.push(instance);
    const served = servedProjects(ownership);
    if (served === 'all') {
      this.#ofAll.push(instance);
      return;
    }
    for (const project of served) {
      if (this.#ofSome.get(project)?.push(instance) === undefined) this.#ofSome.set(project, [instance]);
    }
  }

  /** Whether instances serve the project that do not serve all. */
  isOwn(project: string | null): boolean {
    return project !== null && this.#ofSome.has(project);
  }

  /** The projects for which that holds. */
  owners(): readonly string[] {
    return [...this.#ofSome.keys()];
  }

  /** The instances that serve the project: first those that do not serve all. Null: those that serve all. */
  of(project: string | null): Fleet {
    const some = project === null ? undefined : this.#ofSome.get(project);
    if (project === null || some === undefined) {
      this.#common ??= this.#make(this.#ofAll);
      return this.#common;
    }
    const made = this.#made.get(project) ?? this.#make([...some, ...this.#ofAll]);
    this.#made.set(project, made);
    return made;
  }
}
