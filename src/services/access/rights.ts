/**
 * What somebody who sends requests may do. A key has the same scopes in all of its projects; a person has, in each
 * project, those that their groups give there. So a person who works in one project is never more there than it says,
 * whatever they are elsewhere.
 */
import type { KeyScope } from '../../contracts/access.ts';
import { scopesByProject } from '../../core/access/group-grants.ts';
import type { SessionHolder } from '../../db/access/session.ts';

/** Who sent a request: a key or a person, what they may do and where. */
export interface KeyHolder {
  /** Of the key, or of the person; it names who did something wherever that is kept. */
  readonly key_id: string;
  /** Of a person: all together; `selectProject` says what counts. */
  readonly scopes: ReadonlySet<KeyScope>;
  /** At least one; the first is the default. */
  readonly projects: readonly string[];
  /** Absent: a key, whose scopes are the same everywhere. */
  readonly byProject?: ReadonlyMap<string, ReadonlySet<KeyScope>>;
  /** What was shown for it; absent: the key's present secret. */
  readonly shown?: 'former secret' | 'session';
}

/** Null when there is no project left in which the person may do something. */
export function toHolder({ grants, every_project, ...row }: SessionHolder): KeyHolder | null {
  const { key_id, scopes } = row;
  if (grants === null) return { key_id, scopes: new Set(scopes), projects: row.projects, shown: 'session' };
  const byProject = scopesByProject(grants, every_project ?? []);
  const projects = [...byProject.keys()];
  return projects.length === 0
    ? null
    : { key_id, scopes: new Set(scopes), projects, byProject, shown: 'session' };
}
