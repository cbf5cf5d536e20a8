/**
 * Where an expression stands decides what it may name. Pipeline definitions and skill templates share one grammar,
 * but a definition has no failing input to correct, and a skill has no run.
 */
import { type ExpressionFilter, type FilterName, filterNames, filters } from './filters.ts';
import { type RootName, rootNames, type SkillRootName, skillRootNames } from './roots.ts';
import { type SkillFilterName, skillFilters } from './skill-filters.ts';

export type AnyFilterName = FilterName | SkillFilterName;

export const knownFilters: Readonly<Record<AnyFilterName, ExpressionFilter>> = {
  ...filters,
  ...skillFilters,
};

export interface Dialect {
  readonly roots: readonly (RootName | SkillRootName)[];
  readonly filterNames: readonly AnyFilterName[];
  /** What to write instead of an unknown root that is near none. */
  readonly rootHint: string;
}

export const pipelineDialect: Dialect = {
  roots: rootNames,
  filterNames,
  rootHint: 'a field of the job is written job.<field>',
};

export const skillDialect: Dialect = {
  roots: skillRootNames,
  filterNames: Object.keys(knownFilters) as AnyFilterName[],
  rootHint: 'a field of the failing input is written input.<field>',
};
