/** The rules of projects for requests of models, as this process knows them. */
import type { OnBudget } from '@capstan/core/contracts/decision';
import { LRUCache } from 'lru-cache';
import type { Db } from '../db/connect.ts';
import { readModelRules } from '../db/instance/model-alias.ts';

export interface ModelRules {
  /** Capabilities by their other names. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Refuses a request of which a model would not get every field. */
  readonly isStrict: boolean;
  /** The end of calls whose budgets have no more room; null: the defaults. */
  readonly onBudget: OnBudget | null;
}

/** The rules of projects that make calls. They are read at most every 5 s, so a call rarely waits for them. */
export type ModelRuleBook = LRUCache<string, ModelRules>;

const trustMs = 5_000;

/** While the database is away, the last known rules hold. */
export function createModelRuleBook(db: Db): ModelRuleBook {
  return new LRUCache<string, ModelRules>({
    max: 1_000,
    ttl: trustMs,
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    fetchMethod: async (projectId) => {
      const { is_strict, on_budget: onBudget, aliases } = await readModelRules(db, projectId);
      return { aliases: new Map(Object.entries(aliases)), isStrict: is_strict, onBudget };
    },
  });
}

const noRules: ModelRules = { aliases: new Map(), isStrict: false, onBudget: null };

export async function rulesOf(
  { modelRules }: { readonly modelRules: ModelRuleBook },
  { project_id }: { readonly project_id: string },
): Promise<ModelRules> {
  return (await modelRules.fetch(project_id)) ?? noRules;
}
