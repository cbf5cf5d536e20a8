/**
 * Evaluates compiled templates: total, without side effects, reading nothing but the scope. Results share nothing that could
 * change with the scope or the template, and are never scanned for expressions again.
 */
import type { Json } from '../../contracts/primitives.ts';
import type { Expression } from './ast.ts';
import { compareValues } from './compare.ts';
import { knownFilters } from './dialect.ts';
import {
  describeValue,
  type Evaluation,
  type ExpressionScope,
  evaluationError,
  found,
  type Outcome,
  type SkillScope,
  scalarText,
  spend,
} from './evaluation.ts';
import { copyValue } from './json-values.ts';
import { expressionLimits } from './limits.ts';
import { resolvePath } from './resolve-path.ts';
import type { CompiledTemplate, TemplateNode } from './template.ts';

/** @throws ExpressionError when a path is missing or a value has the wrong type for its place */
export function evaluateTemplate(template: CompiledTemplate, scope: ExpressionScope | SkillScope): Json {
  return evaluateNode(template.root, scope, { left: expressionLimits.built });
}

function evaluateNode(node: TemplateNode, scope: Evaluation['scope'], budget: Evaluation['budget']): Json {
  switch (node.kind) {
    case 'literal':
      return copyValue(node.value, { scope, pointer: node.pointer, budget });
    case 'list':
      return node.items.map((item) => evaluateNode(item, scope, budget));
    case 'object':
      return Object.fromEntries(
        node.entries.map(([key, value]) => [key, evaluateNode(value, scope, budget)]),
      );
    case 'expression':
      return evaluateWhole(node.expression, { scope, pointer: node.pointer, budget });
    case 'text':
      return evaluateText(node.parts, { scope, pointer: node.pointer, budget });
  }
}

function evaluateWhole(expression: Expression, evaluation: Evaluation): Json {
  return copyValue(evaluateToValue(expression, evaluation), evaluation);
}

function evaluateText(parts: readonly (string | Expression)[], evaluation: Evaluation): string {
  const isBlankAround = parts.every((part) => typeof part !== 'string' || part.trim() === '');
  return parts
    .map((part) => {
      const text = typeof part === 'string' ? part : embeddedText(part, evaluation, isBlankAround);
      spend(evaluation, text.length);
      return text;
    })
    .join('');
}

function embeddedText(expression: Expression, evaluation: Evaluation, isBlankAround: boolean): string {
  const value = evaluateToValue(expression, evaluation);
  const text = scalarText(value);
  if (text !== null) return text;
  const hint = value === null ? 'write ?? "" for an empty text' : 'write | json for its JSON text';
  const around = isBlankAround ? '; to keep its type, remove the white space or line break around {{ }}' : '';
  throw evaluationError(
    evaluation,
    `text takes strings, numbers and booleans, not ${describeValue(value)}; use ?? "" or | json`,
    hint + around,
  );
}

function evaluateToValue(expression: Expression, evaluation: Evaluation): Json {
  const outcome = evaluate(expression, evaluation);
  if (outcome.found) return outcome.value;
  const { message, suggestion } = outcome.explain();
  throw evaluationError(evaluation, message, suggestion);
}

function evaluate(expression: Expression, evaluation: Evaluation): Outcome {
  switch (expression.kind) {
    case 'literal':
      return found(expression.value);
    case 'path':
      return resolvePath(expression, evaluation);
    case 'filtered':
      return evaluateFiltered(expression, evaluation);
    case 'otherwise':
      return evaluateAlternatives(expression.alternatives, evaluation);
    case 'not':
      return found(!evaluateToBoolean(expression.of, '!', evaluation));
    case 'all':
      return found(expression.of.every((operand) => evaluateToBoolean(operand, '&&', evaluation)));
    case 'any':
      return found(expression.of.some((operand) => evaluateToBoolean(operand, '||', evaluation)));
    case 'comparison':
      return evaluateComparison(expression, evaluation);
  }
}

function evaluateFiltered(
  expression: Extract<Expression, { kind: 'filtered' }>,
  evaluation: Evaluation,
): Outcome {
  let outcome = evaluate(expression.of, evaluation);
  for (const { name, argument } of expression.filters) {
    if (outcome.found) outcome = knownFilters[name].apply({ value: outcome.value, argument, evaluation });
    else if (name === 'default') outcome = found(argument);
  }
  return outcome;
}

/** The first that is neither missing nor null; else what the last one is. */
function evaluateAlternatives(alternatives: readonly Expression[], evaluation: Evaluation): Outcome {
  let outcome: Outcome = found(null);
  for (const alternative of alternatives) {
    outcome = evaluate(alternative, evaluation);
    if (outcome.found && outcome.value !== null) return outcome;
  }
  return outcome;
}

function evaluateToBoolean(expression: Expression, operator: string, evaluation: Evaluation): boolean {
  const value = evaluateToValue(expression, evaluation);
  if (typeof value === 'boolean') return value;
  throw evaluationError(
    evaluation,
    `${operator} takes booleans, not ${describeValue(value)}`,
    'compare instead: a == b',
  );
}

function evaluateComparison(
  { first, rest }: Extract<Expression, { kind: 'comparison' }>,
  evaluation: Evaluation,
): Outcome {
  let left = evaluateToValue(first, evaluation);
  for (const { operator, right } of rest) {
    left = compareValues(left, operator, evaluateToValue(right, evaluation), evaluation);
  }
  return found(left);
}
