/** The rules of projects for requests of models, as this process knows them. */
import type { OnBudget } from '@capstan/core/contracts/decision';
import type { Db } from '../db/connect.ts';
import { readModelRules } from '../db/instance/model-alias.ts';
import { createRecentFacts, type RecentFacts } from './recent-facts.ts';

export interface ModelRules {
  /** Capabilities by their other names. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Refuses a request of which a model would not get every field. */
  readonly isStrict: boolean;
  /** The end of calls whose budgets have no more room; null: the defaults. */
  readonly onBudget: OnBudget | null;
}

export type ModelRuleBook = RecentFacts<ModelRules>;

export function createModelRuleBook(db: Db): ModelRuleBook {
  return createRecentFacts(async (projectId) => {
    const { is_strict, on_budget: onBudget, aliases } = await readModelRules(db, projectId);
    return { aliases: new Map(Object.entries(aliases)), isStrict: is_strict, onBudget };
  });
}
