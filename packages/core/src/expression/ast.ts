/**
 * A parsed expression: plain data, so it can be cached and compared. Chains (`??`, `&&`, filters, comparisons, sums,
 * products) are lists, never nested, so only parentheses, `!`, lists and objects deepen a tree.
 */
import type { Scalar } from '../json/values.ts';
import type { AnyFilterName } from './filters.ts';
import type { AnyRootName, ArithmeticOperator, ComparisonOperator } from './language.ts';

/** One step of a path: a key, an index, or every item (`[*]`). */
export type Segment = string | number | { readonly each: true };

export interface Path {
  readonly kind: 'path';
  readonly root: AnyRootName;
  readonly segments: readonly Segment[];
  /** Where the path starts in its string, in UTF-16 units. */
  readonly offset: number;
}

export interface FilterCall {
  readonly name: AnyFilterName;
  /** A text that is written in quotes, such as a field. */
  readonly argument: string | null;
  /** Arguments that are expressions. */
  readonly values?: readonly Expression[];
  /** Between a field and a value. */
  readonly operator?: ComparisonOperator;
}

export type Expression =
  | { readonly kind: 'literal'; readonly value: Scalar }
  | Path
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [key: string, value: Expression])[] }
  | { readonly kind: 'filtered'; readonly of: Expression; readonly filters: readonly FilterCall[] }
  | { readonly kind: 'otherwise'; readonly alternatives: readonly Expression[] }
  | { readonly kind: 'not'; readonly of: Expression }
  | { readonly kind: 'all' | 'any'; readonly of: readonly Expression[] }
  | {
      readonly kind: 'comparison';
      readonly first: Expression;
      readonly rest: readonly { readonly operator: ComparisonOperator; readonly right: Expression }[];
    }
  | {
      readonly kind: 'sum' | 'product';
      readonly first: Expression;
      readonly rest: readonly { readonly operator: ArithmeticOperator; readonly right: Expression }[];
    };

/** A list or an object that is written as such. */
export type Literal = Extract<Expression, { readonly kind: 'list' | 'object' }>;

export function partsOf(literal: Literal): readonly Expression[] {
  return literal.kind === 'list' ? literal.items : literal.entries.map(([, value]) => value);
}

const plainName = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** A path as it is written: `steps.a.output["two words"][0][*]`. */
export function formatPath(root: string, segments: readonly Segment[]): string {
  return root + segments.map(formatSegment).join('');
}

function formatSegment(segment: Segment): string {
  if (typeof segment === 'number') return `[${segment}]`;
  if (typeof segment === 'object') return '[*]';
  return plainName.test(segment) ? `.${segment}` : `[${JSON.stringify(segment)}]`;
}
