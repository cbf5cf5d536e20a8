import type { KeyScope, Scope } from '../../contracts/access.ts';
import { AppError } from '../../errors/app-error.ts';
import type { KeyHolder } from './rights.ts';

/** A verified key, or a person, working in one of its projects. */
export interface Caller extends KeyHolder {
  readonly project_id: string;
  /** Projects of a person in which they may not do all that they may do here; `projects` are the others. */
  readonly alsoIn?: readonly string[];
}

/** What a person may pass on is what they hold in every project that they pass on. */
function narrow(holder: KeyHolder, project_id: string): Caller {
  const scopes = holder.byProject?.get(project_id);
  if (scopes === undefined) return { ...holder, project_id };
  const isFull = (project: string): boolean => {
    const held = holder.byProject?.get(project) ?? new Set();
    return [...scopes].every((scope) => holdsScope({ scopes: held }, scope));
  };
  const projects = holder.projects.filter(isFull);
  return {
    ...holder,
    project_id,
    scopes,
    projects,
    alsoIn: holder.projects.filter((project) => !projects.includes(project)),
  };
}

/**
 * @param requested the X-Project-ID header; without it the key's first project is taken
 * @throws AppError `forbidden` when the key does not hold the project, whether or not it exists
 */
export function selectProject(holder: KeyHolder, requested: string | undefined): Caller {
  const project_id = requested ?? holder.projects[0];
  if (project_id !== undefined && holder.projects.includes(project_id)) return narrow(holder, project_id);
  throw new AppError('forbidden', `${holder.key_id} does not hold the project of X-Project-ID`);
}

const registerSome = 'capability:register:';

/** `admin` includes every scope but `operator`. */
export function holdsScope({ scopes }: Pick<KeyHolder, 'scopes'>, scope: KeyScope): boolean {
  return scopes.has(scope) || (scopes.has('admin') && scope !== 'operator');
}

function refuseScope({ key_id, scopes }: KeyHolder, missing: string): AppError {
  return new AppError('forbidden', `${key_id} lacks the scope ${missing}; it has ${[...scopes].join(', ')}`);
}

/** Leave to register some names opens the routes of registration; `requireName` looks at the name. */
function opensRoute(holder: KeyHolder, scope: Scope): boolean {
  if (holdsScope(holder, scope)) return true;
  return scope === 'capability:register' && [...holder.scopes].some((held) => held.startsWith(registerSome));
}

/** Whether it may call a route that asks for the scope. */
export function mayCall(holder: KeyHolder, scope: Scope): boolean {
  return opensRoute(holder, scope);
}

/** @throws AppError `forbidden` */
export function requireScope(holder: KeyHolder, scope: Scope): void {
  if (!opensRoute(holder, scope)) throw refuseScope(holder, scope);
}

export function isOperator({ scopes }: Pick<KeyHolder, 'scopes'>): boolean {
  return scopes.has('operator');
}

function covers(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** @throws AppError `forbidden` when the key may register other names only */
export function requireName(holder: KeyHolder, name: string): void {
  if (holdsScope(holder, 'capability:register')) return;
  const { key_id, scopes } = holder;
  const patterns = [...scopes].filter((scope) => scope.startsWith(registerSome));
  if (patterns.some((pattern) => covers(pattern.slice(registerSome.length), name))) return;
  throw new AppError('forbidden', `${key_id} may not register ${name}, only by ${patterns.join(', ')}`);
}

/** A key passes on at most what it holds. @throws AppError `forbidden` */
export function requireScopes(holder: KeyHolder, wanted: readonly KeyScope[]): void {
  const missing = wanted.filter((scope) => !holdsScope(holder, scope));
  if (missing.length > 0) throw refuseScope(holder, missing.join(', '));
}

/** A key passes on at most what it holds. @throws AppError `forbidden` */
export function requireProjects({ key_id, projects }: KeyHolder, wanted: readonly string[]): void {
  const foreign = wanted.filter((project) => !projects.includes(project));
  if (foreign.length === 0) return;
  throw new AppError('forbidden', `${key_id} does not hold ${foreign.slice(0, 5).join(', ')}`);
}
