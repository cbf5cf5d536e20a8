/**
 * A parsed expression: plain data, so it can be cached and compared. Chains (`??`, `&&`, filters,
 * comparisons) are lists, never nested, so only parentheses and `!` deepen a tree.
 */
import type { Scalar } from '../json-type.ts';
import type { AnyFilterName } from './dialect.ts';
import type { RootName, SkillRootName } from './roots.ts';
import type { ComparisonOperator } from './symbols.ts';

/** One step of a path: a key, an index, or every item (`[*]`). */
export type Segment = string | number | { readonly each: true };

export interface Path {
  readonly kind: 'path';
  readonly root: RootName | SkillRootName;
  readonly segments: readonly Segment[];
  /** Where the path starts in its string, in UTF-16 units. */
  readonly offset: number;
}

export interface FilterCall {
  readonly name: AnyFilterName;
  readonly argument: Scalar;
}

export type Expression =
  | { readonly kind: 'literal'; readonly value: Scalar }
  | Path
  | { readonly kind: 'filtered'; readonly of: Expression; readonly filters: readonly FilterCall[] }
  | { readonly kind: 'otherwise'; readonly alternatives: readonly Expression[] }
  | { readonly kind: 'not'; readonly of: Expression }
  | { readonly kind: 'all' | 'any'; readonly of: readonly Expression[] }
  | {
      readonly kind: 'comparison';
      readonly first: Expression;
      readonly rest: readonly { readonly operator: ComparisonOperator; readonly right: Expression }[];
    };
