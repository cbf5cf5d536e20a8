import type { Scope } from '../../contracts/access.ts';
import { AppError } from '../../errors/app-error.ts';
import type { KeyHolder } from './verify-key.ts';

/** A verified key working in one of its projects. */
export interface Caller extends KeyHolder {
  readonly project_id: string;
}

/**
 * @param requested the X-Project-ID header; without it the key's first project is taken
 * @throws AppError `forbidden` when the key does not hold the project, whether or not it exists
 */
export function selectProject(holder: KeyHolder, requested: string | undefined): Caller {
  const project_id = requested ?? holder.projects[0];
  if (project_id !== undefined && holder.projects.includes(project_id)) return { ...holder, project_id };
  throw new AppError('forbidden', `${holder.key_id} does not hold the project of X-Project-ID`);
}

/** `admin` includes every scope. @throws AppError `forbidden` */
export function requireScope({ key_id, scopes }: KeyHolder, scope: Scope): void {
  if (scopes.has(scope) || scopes.has('admin')) return;
  throw new AppError('forbidden', `${key_id} lacks the scope ${scope}; it has ${[...scopes].join(', ')}`);
}

/** A key passes on at most what it holds. @throws AppError `forbidden` */
export function requireProjects({ key_id, projects }: KeyHolder, wanted: readonly string[]): void {
  const foreign = wanted.filter((project) => !projects.includes(project));
  if (foreign.length === 0) return;
  throw new AppError('forbidden', `${key_id} does not hold ${foreign.slice(0, 5).join(', ')}`);
}
