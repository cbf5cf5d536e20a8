/** What an expression yields, as far as types tell, and what is told on the way. */
import type { Path } from '../expression/ast.ts';
import type { Effort } from './overlap.ts';
import { anyType, neverType, type ValueType } from './value-type.ts';

export interface TypedValue {
  readonly type: ValueType;
  /** Whether there is no value, which `??` covers. */
  readonly missing: 'no' | 'maybe' | 'yes';
}

export type TypeFaultCode =
  | 'comparison_constant'
  | 'operand_invalid'
  | 'path_invalid'
  | 'path_optional'
  | 'path_undescribed'
  | 'path_unknown';

export interface TypeFault {
  /**
   * error: whenever it is evaluated it fails, whatever the values; warning: with some values, or it cannot have been meant;
   * note: nobody can tell.
   */
  readonly severity: 'error' | 'warning' | 'note';
  readonly code: TypeFaultCode;
  readonly message: string;
  /** In the string of the expression. */
  readonly offset: number | undefined;
  readonly suggestion?: string | undefined;
}

/** The value that the beginning of a path names. */
export interface PathStart extends TypedValue {
  /** Segments that belong to the beginning. */
  readonly length: number;
  /** Why it may be missing. */
  readonly reason?: string | undefined;
}

export interface TypeContext {
  /** Null: nothing is known of it, or it is wrong in a way that is told elsewhere. */
  readonly startOf: (path: Path) => PathStart | null;
  readonly report: (fault: TypeFault) => void;
  readonly effort: Effort;
}

export const unknownValue: TypedValue = { type: anyType, missing: 'maybe' };

export const missingValue: TypedValue = { type: neverType, missing: 'yes' };

export function someValue(type: ValueType): TypedValue {
  return { type, missing: 'no' };
}
