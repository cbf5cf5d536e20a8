/**
 * The key or person that sent a request, and its rights. A key has the same scopes in all of its projects; a person
 * has, in each project, the scopes that their groups give there. So a person who works in one project never uses rights
 * from another.
 */

import { hash } from 'node:crypto';
import { scopesByProject } from '@capstan/core/access/group-grants';
import {
  type CallingKey,
  coversName,
  describeBeyond,
  mayCallName,
  type ProjectKey,
} from '@capstan/core/call/caller';
import type { KeyScope, NamedScope, Scope } from '@capstan/core/contracts/access';
import { AppError } from '@capstan/core/errors/app-error';
import { type CallSource, scopesOfCall } from '@capstan/core/money/scoped-budget';
import type { Identity } from '../../clients/openid-claims.ts';
import { findTakenIds } from '../../db/access/person.ts';
import type { SessionHolder } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import { toRates } from '../../parts/access/key-rates.ts';
import type { KeyHolder } from '../../parts/access/verified-keys.ts';

/** A verified key, or a person, working in one of its projects. */
export interface Caller extends KeyHolder {
  readonly project_id: string;
  /** The person's projects in which they lack some scope that they have here; `projects` are the others. */
  readonly alsoIn?: readonly string[];
}

/** Limits a person to one project. `projects` keeps those where they hold all of its scopes and may pass them on. */
function narrow(holder: KeyHolder, project_id: string): Caller {
  const scopes = holder.byProject?.get(project_id);
  if (scopes === undefined) return { project_id, ...holder };
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
 * @param requested the X-Project-ID header; without it the key's first project is chosen
 * @throws AppError `forbidden` when the key does not hold the project, whether or not it exists
 */
export function selectProject(holder: KeyHolder, requested: string | undefined): Caller {
  const project_id = requested ?? holder.projects[0];
  if (project_id !== undefined && holder.projects.includes(project_id)) return narrow(holder, project_id);
  throw new AppError('forbidden', `${holder.key_id} does not have the project of X-Project-ID`);
}

/** `admin` includes every scope but `operator`. */
export function holdsScope({ scopes }: Pick<KeyHolder, 'scopes'>, scope: KeyScope): boolean {
  return scopes.has(scope) || (scopes.has('admin') && scope !== 'operator');
}

function refuseScope({ key_id, scopes }: KeyHolder, missing: string): AppError {
  return new AppError('forbidden', `${key_id} lacks the scope ${missing}; it has ${[...scopes].join(', ')}`);
}

type Scopes = Pick<KeyHolder, 'scopes'>;

/** The held scopes that give a right for some names alone. */
function namedScopes({ scopes }: Scopes, scope: Scope): readonly KeyScope[] {
  return [...scopes].filter((held) => held.startsWith(`${scope}:`));
}

/** Whether it holds the scope, at least for some names: the caller of this function checks the name. */
export function mayCall(holder: KeyHolder, scope: Scope): boolean {
  return holdsScope(holder, scope) || namedScopes(holder, scope).length > 0;
}

/** @throws AppError `forbidden`, also for a key that holds the scope for some names alone */
export function requireScope(holder: KeyHolder, scope: Scope): void {
  if (!holdsScope(holder, scope)) throw refuseScope(holder, scope);
}

/** For acts that check the name (`requireName`). @throws AppError `forbidden` */
export function requireScopeOfSome(holder: KeyHolder, scope: Scope): void {
  if (!mayCall(holder, scope)) throw refuseScope(holder, scope);
}

export function isOperator({ scopes }: Pick<KeyHolder, 'scopes'>): boolean {
  return scopes.has('operator');
}

/** Whether its scopes limit the names that it may call, and leave out this one. */
export function isBeyondCalls(holder: Scopes, name: string): boolean {
  return !mayCallName({ names: callableNames(holder) }, name);
}

/** The names to which its scopes limit its calls; null: they do not. */
function callableNames(holder: Scopes): readonly string[] | null {
  const scope = 'capability:call';
  const named = holdsScope(holder, scope) ? [] : namedScopes(holder, scope);
  return named.length === 0 ? null : named.map((held) => held.slice(scope.length + 1));
}

/** Whether its scopes limit the names for which it has a right, and leave out this one. */
export function isBeyond(holder: Scopes, scope: NamedScope, name: string): boolean {
  return namedScopes(holder, scope).length > 0 && !holdsName(holder, scope, name);
}

function holdsName(holder: Scopes, scope: NamedScope, name: string): boolean {
  const isCovered = (held: KeyScope): boolean => coversName(held.slice(scope.length + 1), name);
  return holdsScope(holder, scope) || namedScopes(holder, scope).some(isCovered);
}

const rightWords = {
  'capability:register': 'register',
  'capability:call': 'call',
  'run:write': 'start the pipeline',
} as const;

/** @throws AppError `forbidden` when the key holds the right for other names only */
export function requireName(
  holder: Pick<KeyHolder, 'key_id' | 'scopes'>,
  scope: NamedScope,
  name: string,
): void {
  if (holdsName(holder, scope, name)) return;
  const allowed = namedScopes(holder, scope).join(', ');
  throw new AppError(
    'forbidden',
    `${holder.key_id} may not ${rightWords[scope]} ${name}, only by ${allowed}`,
  );
}

/** What a request names beside its key: for budgets and costs. */
export type CallMarks = Omit<CallSource, 'keyId'>;

export function toCallingKey(caller: Caller, marks: CallMarks): ProjectKey {
  const { key_id, project_id, rates, onBudget = null } = caller;
  return {
    key_id,
    project_id,
    scopes: scopesOfCall({ keyId: key_id, user: marks.user, labels: marks.labels }),
    names: callableNames(caller),
    token_rates: rates?.tokens ?? [],
    onBudget,
  };
}

/** @throws AppError `forbidden` when the key may call other names only */
export function requireCallable(key: CallingKey, name: string): void {
  if (!mayCallName(key, name)) throw new AppError('forbidden', describeBeyond(key, name));
}

/** Why a key may not start a run, or null. A right to some pipelines is one to their stored versions. */
export function findStartFault(
  holder: Pick<KeyHolder, 'key_id' | 'scopes'>,
  { pipeline }: { readonly pipeline?: string | undefined },
): AppError | null {
  if (holdsScope(holder, 'run:write')) return null;
  if (pipeline !== undefined && holdsName(holder, 'run:write', pipeline)) return null;
  const allowed = namedScopes(holder, 'run:write').join(', ');
  const what = pipeline === undefined ? 'a definition of its own' : pipeline;
  return new AppError('forbidden', `${holder.key_id} may not start ${what}, only by ${allowed}`);
}

/** How the key starts runs: one that may start some pipelines alone keeps to their budgets. */
export function starterOf(holder: Pick<KeyHolder, 'key_id' | 'scopes'>) {
  return { by: holder.key_id, keepsBudget: !holdsScope(holder, 'run:write') };
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

/** Null when there is no project left in which the person has a right. */
export function toHolder({ grants, every_project, ...row }: SessionHolder): KeyHolder | null {
  const { key_id, scopes } = row;
  const rates = toRates(row.rates);
  if (grants === null) {
    return { key_id, scopes: new Set(scopes), projects: row.projects, rates, shown: 'session' };
  }
  const byProject = scopesByProject(grants, every_project ?? []);
  const projects = [...byProject.keys()];
  return projects.length === 0
    ? null
    : { key_id, scopes: new Set(scopes), projects, byProject, shown: 'session' };
}

// The name of a person in reviews, decisions and the audit log: `user:anna@example.org`. It is given at the first
// sign-in and stays, even if the provider renames them later.

const prefix = 'user:';
/** Ids that are valid in addresses and queries of the audit log. */
const shown = /^[!-~]{1,100}$/;

export function isPersonId(id: string): boolean {
  return id.startsWith(prefix);
}

function wantedId({ email, subject, issuer }: Identity): string {
  const name = [email, subject].find((text) => text !== null && shown.test(text));
  return `${prefix}${name ?? hash('sha256', `${issuer} ${subject}`).slice(0, 24)}`;
}

/** A second person with the same address is `…#2`: an address that is reassigned gives its new owner no rights. */
export async function choosePersonId(trx: Db, identity: Identity): Promise<string> {
  const wanted = wantedId(identity);
  const names = [wanted, ...Array.from({ length: 98 }, (_, at) => `${wanted}#${at + 2}`)];
  const taken = await findTakenIds(trx, names);
  return names.find((name) => !taken.includes(name)) ?? `${wanted}#${hash('sha256', identity.subject)}`;
}
