/** Prints an expression so that parsing it gives the same tree back. */
import type { Expression, FilterCall } from '../../src/expression/ast.ts';
import { formatPath } from '../../src/expression/ast.ts';
import { knownFilters } from '../../src/expression/filters.ts';

/** In the place of a whole `{{ }}` or of an operand. */
export function printExpression(expression: Expression): string {
  if (expression.kind === 'otherwise') return expression.alternatives.map(printSum).join(' ?? ');
  return printSum(expression);
}

function printSum(expression: Expression): string {
  if (expression.kind !== 'sum') return printProduct(expression);
  const rest = expression.rest.map(({ operator, right }) => ` ${operator} ${printProduct(right)}`);
  return printProduct(expression.first) + rest.join('');
}

function printProduct(expression: Expression): string {
  if (expression.kind !== 'product') return printAlternative(expression);
  const rest = expression.rest.map(({ operator, right }) => `${operator}${printAlternative(right)}`);
  return printAlternative(expression.first) + rest.join('');
}

function printAlternative(expression: Expression): string {
  if (expression.kind !== 'filtered') return printPrimary(expression);
  const calls = expression.filters.map(printCall);
  return printPrimary(expression.of) + calls.join('');
}

function printCall({ name, argument, values, operator }: FilterCall): string {
  const { argument: kind } = knownFilters[name];
  const written = (values ?? []).map(printExpression);
  if (operator !== undefined) return `|${name}(${JSON.stringify(argument)} ${operator} ${written.join(',')})`;
  if (values !== undefined) return `|${name}(${written.join(' , ')})`;
  return kind === 'none' || kind === 'optional' ? ` | ${name}` : `|${name}(${JSON.stringify(argument)})`;
}

function printPrimary(expression: Expression): string {
  if (expression.kind === 'literal') return JSON.stringify(expression.value);
  if (expression.kind === 'path') return formatPath(expression.root, expression.segments);
  if (expression.kind === 'list') return `[${expression.items.map(printExpression).join(',')}]`;
  if (expression.kind === 'object') return `{${expression.entries.map(printField).join(' , ')}}`;
  return `(${printCondition(expression)})`;
}

function printField([key, value]: readonly [string, Expression]): string {
  return `${JSON.stringify(key)}:${printExpression(value)}`;
}

function printCondition(expression: Expression): string {
  return expression.kind === 'any'
    ? expression.of.map(printConjunction).join(' || ')
    : printConjunction(expression);
}

function printConjunction(expression: Expression): string {
  return expression.kind === 'all'
    ? expression.of.map(printComparison).join('&&')
    : printComparison(expression);
}

function printComparison(expression: Expression): string {
  if (expression.kind !== 'comparison') return printOperand(expression);
  const rest = expression.rest.map(({ operator, right }) => ` ${operator} ${printOperand(right)}`);
  return printOperand(expression.first) + rest.join('');
}

function printOperand(expression: Expression): string {
  if (expression.kind === 'not') return `!${printOperand(expression.of)}`;
  if (expression.kind === 'all' || expression.kind === 'any' || expression.kind === 'comparison') {
    return `(${printCondition(expression)})`;
  }
  return printExpression(expression);
}
