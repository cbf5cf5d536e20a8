/**
 * Expressions over the input of one call, which an instance declares: its prices, and what decides about what it must
 * load. They are checked at its registration, and evaluated for each call.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { Segment } from '../expression/ast.ts';
import { evaluateTemplate } from '../expression/evaluate.ts';
import { inputDialect } from '../expression/filters.ts';
import { ExpressionError, ExpressionSyntaxError } from '../expression/language.ts';
import { Meter, workLimits } from '../expression/meter.ts';
import { type CompiledTemplate, readTemplate, visitPaths } from '../expression/template.ts';
import { isList, isPlainObject } from '../json/values.ts';

/** expression: one `{{ }}` is the whole text. template: a text with any number of them. */
type Form = 'expression' | 'template';

/** Each version of a spec has its own text, and parsing takes longer than evaluating. */
const known = new Map<string, CompiledTemplate | ExpressionSyntaxError>();
const maxKnown = 500;

function parse(text: string): CompiledTemplate | ExpressionSyntaxError {
  let compiled = known.get(text);
  if (compiled === undefined) {
    const { template, errors } = readTemplate(text, '', inputDialect);
    compiled = errors[0] ?? template;
    if (known.size >= maxKnown) known.clear();
    known.set(text, compiled);
  }
  return compiled;
}

/** What is wrong with a text, in any input; null: nothing. */
export function findInputFault(text: string, form: Form): string | null {
  const parsed = parse(text);
  if (parsed instanceof ExpressionSyntaxError) {
    const { message, offset, suggestion } = parsed;
    return `at character ${offset + 1}: ${message}${suggestion === undefined ? '' : `; ${suggestion}`}`;
  }
  if (form === 'expression' && parsed.root.kind !== 'expression') {
    return 'at character 1: one {{ }} is the whole text, such as {{ (input | tokens) * 0.000003 }}';
  }
  return findWorkFault(parsed);
}

/** Values of usual size, which an expression may find at its paths. */
const usualValues: readonly Json[] = [
  'word '.repeat(800),
  1_000,
  Array.from({ length: 20 }, () => ({ role: 'user', content: 'word '.repeat(40) })),
];

/** It is evaluated for every call, so its work is measured before it is accepted. */
function findWorkFault(compiled: CompiledTemplate): string | null {
  const units = Math.max(...usualValues.map((value) => measureWork(compiled, usualInput(compiled, value))));
  if (units <= workLimits.usualPrice) return null;
  const seen = units < workLimits.request ? units : `more than ${workLimits.request}`;
  return `takes ${seen} units of work for an input of usual size; at most ${workLimits.usualPrice} are allowed`;
}

function measureWork(compiled: CompiledTemplate, input: JsonObject): number {
  const meter = new Meter(workLimits.request);
  try {
    evaluateTemplate(compiled, { input, match: {} }, meter);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
  }
  return meter.spent;
}

/** An input with that value at each path of the expression. */
function usualInput(compiled: CompiledTemplate, value: Json): JsonObject {
  let input: JsonObject = { messages: value };
  visitPaths(compiled, ({ segments }) => {
    const filled = withValueAt(input, segments, value);
    if (isPlainObject(filled)) input = filled;
  });
  return input;
}

/** The longest list that is made for an index. */
const longestList = 1_000;

/** Keeps the values of other paths. The items of a list are all alike. */
function withValueAt(container: Json, [segment, ...rest]: readonly Segment[], value: Json): Json {
  if (segment === undefined) return value;
  if (typeof segment === 'string') {
    const members: JsonObject = isPlainObject(container) ? container : {};
    return { ...members, [segment]: withValueAt(members[segment] ?? null, rest, value) };
  }
  const items: readonly Json[] = isList(container) ? container : [];
  const last = typeof segment === 'number' ? Math.min(segment, longestList) : 0;
  const below = withValueAt(items[0] ?? null, rest, value);
  return Array.from({ length: Math.max(items.length, last + 1) }, () => below);
}

/** The value, or why there is none. */
export type OverInput =
  | { readonly value: Json | undefined; readonly fault?: undefined; readonly isTooLarge?: undefined }
  | { readonly value?: undefined; readonly fault: string; readonly isTooLarge: boolean };

export function evaluateOverInput(text: string, input: JsonObject, meter: Meter): OverInput {
  const compiled = parse(text);
  if (compiled instanceof ExpressionSyntaxError) return { fault: compiled.message, isTooLarge: false };
  try {
    return { value: evaluateTemplate(compiled, { input, match: {} }, meter) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { fault: error.message, isTooLarge: error.isTooLarge };
  }
}
