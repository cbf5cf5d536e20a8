/**
 * A `when` value: a bare condition, or one `{{ }}` around it. It compiles to a template of a single expression, so that
 * `references` and `referencedSteps` accept it.
 */
import type { Json } from '../contracts/primitives.ts';
import { evaluateTemplate } from './evaluate.ts';
import {
  describeValue,
  type ExpressionScope,
  type HookScope,
  type SkillScope,
  type WrapScope,
} from './evaluation.ts';
import { type Dialect, pipelineDialect } from './filters.ts';
import {
  delimiters,
  ExpressionError,
  ExpressionSyntaxError,
  expressionLimits,
  isLongerThanBytes,
} from './language.ts';
import type { Meter } from './meter.ts';
import { parseCondition, parseEnd } from './parse.ts';
import type { CompiledTemplate, TemplateNode } from './template.ts';
import { openCursor } from './tokens.ts';

export interface ConditionReading {
  /** With an error, a condition that is never true. */
  readonly condition: CompiledTemplate;
  /** At most one. */
  readonly errors: readonly ExpressionSyntaxError[];
}

/**
 * @param value the text of a condition, or a boolean
 * @param pointer JSON Pointer of the value in its document
 */
export function readCondition(value: Json, pointer = '', dialect = pipelineDialect): ConditionReading {
  try {
    return { condition: compileCondition(value, pointer, dialect), errors: [] };
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    return { condition: { root: constantNode(false, pointer), expressions: 0 }, errors: [error] };
  }
}

/** @throws ExpressionSyntaxError when the value is not a condition */
export function compileCondition(value: Json, pointer = '', dialect = pipelineDialect): CompiledTemplate {
  if (typeof value === 'boolean') return { root: constantNode(value, pointer), expressions: 0 };
  if (typeof value === 'string') return { root: parseText(value, pointer, dialect), expressions: 1 };
  const message = `a condition is needed, not ${describeValue(value)}`;
  throw new ExpressionSyntaxError({ code: 'expression_syntax', pointer, offset: 0, message });
}

/** @throws ExpressionError when a path is missing, an operand has the wrong type, or the value is not a boolean */
export function evaluateCondition(
  condition: CompiledTemplate,
  scope: ExpressionScope | SkillScope | WrapScope | HookScope,
  meter?: Meter,
): boolean {
  const value = evaluateTemplate(condition, scope, meter);
  if (typeof value === 'boolean') return value;
  const pointer = 'pointer' in condition.root ? condition.root.pointer : '';
  throw new ExpressionError({
    pointer,
    message: `a boolean is needed, not ${describeValue(value)}; compare instead`,
    suggestion: 'write a == b',
  });
}

function constantNode(value: boolean, pointer: string): TemplateNode {
  return { kind: 'expression', pointer, expression: { kind: 'literal', value } };
}

function parseText(text: string, pointer: string, dialect: Dialect): TemplateNode {
  const limit = expressionLimits.stringBytes;
  if (isLongerThanBytes(text, limit)) {
    const message = `a condition has at most ${limit} bytes`;
    throw new ExpressionSyntaxError({ code: 'expression_limit', pointer, offset: 0, message });
  }
  const start = text.length - text.trimStart().length;
  const isBare = !text.startsWith(delimiters.open, start);
  const from = isBare ? start : start + delimiters.open.length;
  const cursor = openCursor(text, { pointer, dialect, isBare }, from);
  const expression = parseCondition(cursor);
  const end = parseEnd(cursor);
  if (text.slice(end).trim() !== '') throw afterCondition(pointer, end);
  return { kind: 'expression', pointer, expression };
}

function afterCondition(pointer: string, offset: number): ExpressionSyntaxError {
  return new ExpressionSyntaxError({
    code: 'expression_syntax',
    pointer,
    offset,
    message: 'one {{ }} holds the whole condition; nothing follows it',
    suggestion: 'write the condition without {{ }}',
  });
}
