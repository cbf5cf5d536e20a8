import type { ComparisonOperator } from '../expression/symbols.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { describeType } from './describe-type.ts';
import { type Effort, overlapOf } from './overlap.ts';
import type { TypeFault } from './typed-value.ts';
import { isKind, kinds, type ValueType } from './value-type.ts';

type ComparisonFault = Omit<TypeFault, 'offset'>;

/** What is wrong with comparing them, or null. */
export function compareTypes(
  left: ValueType,
  operator: ComparisonOperator,
  right: ValueType,
  effort: Effort,
): ComparisonFault | null {
  if (operator === '==' || operator === '!=') return compareEqual(left, operator, right, effort);
  if (operator === 'in') return compareIn(left, right);
  const canOrder = [kinds.number, kinds.string].some((kind) => isKind(left, kind) && isKind(right, kind));
  if (canOrder) return null;
  return refuse(
    `${operator} orders two numbers or two strings, not ${describeType(left)} and ${describeType(right)}`,
  );
}

function refuse(message: string): ComparisonFault {
  return {
    severity: 'error',
    code: 'operand_invalid',
    message,
  };
}

function compareEqual(
  left: ValueType,
  operator: string,
  right: ValueType,
  effort: Effort,
): ComparisonFault | null {
  if (overlapOf(left, right, effort) !== 'none') return null;
  return {
    severity: 'warning',
    code: 'comparison_constant',
    message: `${describeType(left)} never equals ${describeType(right)}, so this is always ${operator === '!='}`,
    suggestion: suggestValue(left, right),
  };
}

/** For a word that is nearly one of those it is compared with. */
function suggestValue({ strings: left }: ValueType, { strings: right }: ValueType): string | undefined {
  const [word, allowed] = left?.size === 1 ? [left, right] : [right, left];
  const [only, second] = word ?? [];
  if (only === undefined || second !== undefined || allowed === null) return undefined;
  return createNameSuggester(allowed)(only);
}

function compareIn(left: ValueType, right: ValueType): ComparisonFault | null {
  const places = kinds.list | (isKind(left, kinds.string) ? kinds.string | kinds.object : 0);
  if (isKind(right, places)) return null;
  const seen = `${describeType(left)} in ${describeType(right)}`;
  return refuse(`in looks for a value in a list, or for a string in a string or among keys, not for ${seen}`);
}
