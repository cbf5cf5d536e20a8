/** The rights of a key, a sentence for each scope. */
import type { KeyScope, Scope } from '@capstan/core/contracts/access';

export const scopeWords: Readonly<Record<Scope, string>> = {
  'run:read': 'See runs, their steps, logs and schedules.',
  'run:write': 'Start, pause, cancel and rerun runs, and change schedules.',
  'pipeline:read': 'See pipelines, and plan what a run would cost.',
  'pipeline:write': 'Store versions of pipelines and set aliases.',
  'media:read': 'Download files.',
  'media:write': 'Upload files.',
  'capability:read': 'See capabilities, their instances and calls.',
  'content:read': 'Read what was sent in calls and answered, where the project keeps it.',
  'capability:call': 'Call a capability without a pipeline, which costs its price.',
  'capability:register': 'Register instances, and share them with other projects.',
  'review:decide': 'See and decide reviews.',
  'skill:read': 'See skills and what they saved.',
  'skill:write': 'Edit, flag and retire skills.',
  'cost:read': 'See costs, the ledger and budgets.',
  'secrets:write': 'List, set and delete the secrets of the project.',
  'budget:write': 'Change the daily limit and the budgets of runs.',
  escalate: 'Ask the escalation ladder for advice, without a run.',
  admin: 'Everything in the project, including keys, webhooks and the audit log.',
  operator: 'What all projects share: limits of all, publishers, projects.',
};

export const scopes = Object.keys(scopeWords) as readonly Scope[];

/** Enough to start runs and follow them. */
export const usualScopes: ReadonlySet<Scope> = new Set(['run:read', 'run:write', 'pipeline:read']);

/** @param names of capabilities that the key may register, separated by spaces or commas; `mix*` for a prefix */
export function toKeyScopes(chosen: readonly string[], names: string): readonly KeyScope[] {
  const registered = names.split(/[\s,]+/).filter((name) => name !== '');
  return [
    ...scopes.filter((scope) => chosen.includes(scope)),
    ...registered.map((name): KeyScope => `capability:register:${name}`),
  ];
}
