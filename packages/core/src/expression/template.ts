/**
 * Compiles a JSON value whose strings may hold `{{ expr }}`. Parts without an expression stay as they are; object keys
 * are never templates; `{"$literal": any}` yields its value unchanged.
 *
 * Also lists what a template refers to, without evaluating it.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isForbiddenName, isList, isPlainObject } from '../json/values.ts';
import { type Expression, type FilterCall, type Path, partsOf, type Segment } from './ast.ts';
import { type Dialect, pipelineDialect } from './filters.ts';
import {
  delimiters,
  type ExpressionErrorCode,
  ExpressionSyntaxError,
  expressionLimits,
  isLongerThanBytes,
  isRootName,
  type RootName,
} from './language.ts';
import { parseClose, parseExpression } from './parse.ts';
import { openCursor } from './tokens.ts';

export type TemplateNode =
  | { readonly kind: 'literal'; readonly pointer: string; readonly value: Json }
  /** A string that is exactly one `{{ }}`: keeps the type of its value. */
  | { readonly kind: 'expression'; readonly pointer: string; readonly expression: Expression }
  /** Text with expressions in it: always a string. Without parts, a text whose expressions cannot be read. */
  | { readonly kind: 'text'; readonly pointer: string; readonly parts: readonly (string | Expression)[] }
  | { readonly kind: 'list'; readonly items: readonly TemplateNode[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [string, TemplateNode])[] };

export interface CompiledTemplate {
  readonly root: TemplateNode;
  /** How many `{{ }}` it holds. */
  readonly expressions: number;
}

export interface TemplateReading {
  /** Strings with an error have no value. */
  readonly template: CompiledTemplate;
  /** At most one per string. */
  readonly errors: readonly ExpressionSyntaxError[];
}

interface Reading {
  readonly dialect: Dialect;
  readonly errors: ExpressionSyntaxError[];
  expressions: number;
}

/** @param pointer JSON Pointer of the value in its document, the start of every reported pointer */
export function readTemplate(value: Json, pointer = '', dialect = pipelineDialect): TemplateReading {
  const reading: Reading = { dialect, errors: [], expressions: 0 };
  const root = compileValue(value, { reading, pointer, depth: 0 });
  return { template: { root, expressions: reading.expressions }, errors: reading.errors };
}

/** @throws ExpressionSyntaxError the first error in the value */
export function compileTemplate(value: Json, pointer = '', dialect = pipelineDialect): CompiledTemplate {
  const { template, errors } = readTemplate(value, pointer, dialect);
  if (errors[0] !== undefined) throw errors[0];
  return template;
}

interface ReadingPosition {
  readonly reading: Reading;
  readonly pointer: string;
  readonly depth: number;
}

function below(place: ReadingPosition, segment: string | number): ReadingPosition {
  return { reading: place.reading, pointer: extendPointer(place.pointer, segment), depth: place.depth + 1 };
}

function compileValue(value: Json, place: ReadingPosition): TemplateNode {
  if (typeof value === 'string')
    return value.includes(delimiters.open) ? compileString(value, place) : literal(value, place);
  if (typeof value !== 'object' || value === null) return literal(value, place);
  if (place.depth >= expressionLimits.nesting) {
    const message = `the value nests deeper than ${expressionLimits.nesting}`;
    return refuse(value, place, { code: 'expression_limit', message });
  }
  if (isList(value)) {
    const items = value.map((item, index) => compileValue(item, below(place, index)));
    return items.every((item, index) => isKept(item, value[index]))
      ? literal(value, place)
      : { kind: 'list', items };
  }
  return isPlainObject(value) ? compileObject(value, place) : literal(value, place);
}

function compileObject(value: JsonObject, place: ReadingPosition): TemplateNode {
  const keys = Object.keys(value);
  if (Object.hasOwn(value, '$literal')) {
    if (keys.length === 1) return literal(value.$literal ?? null, place);
    const message = '$literal stands alone in its object, without other keys';
    return refuse(value, place, { code: 'expression_syntax', message });
  }
  const entries = keys.map((key) => {
    const at = below(place, key);
    const node = isForbiddenName(key)
      ? refuse(null, at, { code: 'name_forbidden', message: `the key ${key} is not allowed` })
      : compileValue(value[key] ?? null, at);
    return [key, node] as const;
  });
  return entries.every(([key, node]) => isKept(node, value[key]))
    ? literal(value, place)
    : { kind: 'object', entries };
}

function literal(value: Json, { pointer }: ReadingPosition): TemplateNode {
  return { kind: 'literal', pointer, value };
}

/** Whether a part evaluates to the same object it was compiled from (an unwrapped `$literal` does not). */
function isKept(node: TemplateNode, value: Json | undefined): boolean {
  return node.kind === 'literal' && node.value === value;
}

interface TemplateRefusal {
  readonly code: ExpressionErrorCode;
  readonly message: string;
}

function refuse(value: Json, place: ReadingPosition, refusal: TemplateRefusal): TemplateNode {
  place.reading.errors.push(new ExpressionSyntaxError({ ...refusal, pointer: place.pointer, offset: 0 }));
  return literal(value, place);
}

function compileString(text: string, place: ReadingPosition): TemplateNode {
  const limit = expressionLimits.stringBytes;
  if (isLongerThanBytes(text, limit)) {
    const message = `a string with an expression has at most ${limit} bytes`;
    refuse(text, place, { code: 'expression_limit', message });
    return unreadable(place);
  }
  try {
    return parseString(text, place);
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    place.reading.errors.push(error);
    return unreadable(place);
  }
}

function unreadable({ pointer }: ReadingPosition): TemplateNode {
  return { kind: 'text', pointer, parts: [] };
}

function parseString(text: string, { pointer, reading }: ReadingPosition): TemplateNode {
  const parts: (string | Expression)[] = [];
  let at = 0;
  for (let open = text.indexOf(delimiters.open); open >= 0; open = text.indexOf(delimiters.open, at)) {
    if (open > at) parts.push(text.slice(at, open));
    const from = open + delimiters.open.length;
    const cursor = openCursor(text, { pointer, dialect: reading.dialect, isBare: false }, from);
    parts.push(parseExpression(cursor));
    at = parseClose(cursor);
    reading.expressions++;
  }
  if (at < text.length) parts.push(text.slice(at));
  const [only] = parts;
  return parts.length === 1 && typeof only === 'object'
    ? { kind: 'expression', pointer, expression: only }
    : { kind: 'text', pointer, parts };
}

export interface Reference {
  readonly root: RootName;
  readonly segments: readonly Segment[];
  /** `??` covers a missing value. */
  readonly optional: boolean;
  /** JSON Pointer of the string, and the offset of the path in it, in UTF-16 units. */
  readonly pointer: string;
  readonly offset: number;
}

/** Every path of a pipeline definition's template, in the order of the text. */
export function references(template: CompiledTemplate): Reference[] {
  const found: Reference[] = [];
  visitNode(template.root, (path, { optional, pointer }) => {
    if (!isRootName(path.root)) return;
    found.push({ root: path.root, segments: path.segments, optional, pointer, offset: path.offset });
  });
  return found;
}

/** Whether its value depends on the scope. */
export function hasReference(template: CompiledTemplate): boolean {
  let found = false;
  visitNode(template.root, () => {
    found = true;
  });
  return found;
}

/** Ids of the referenced steps, without duplicates, in the order of the text. */
export function referencedSteps(template: CompiledTemplate): string[] {
  const ids = new Set<string>();
  visitNode(template.root, ({ root, segments: [first] }) => {
    if (root === 'steps' && typeof first === 'string') ids.add(first);
  });
  return [...ids];
}

/** Visits every path of a template, with the filter that it goes through first. */
export function visitPaths(
  template: CompiledTemplate,
  visit: (path: Path, filter: FilterCall | undefined) => void,
): void {
  visitNode(template.root, (path, { filter }) => visit(path, filter));
}

type VisitPath = (path: Path, place: VisitPlace & { readonly pointer: string }) => void;

function visitNode(node: TemplateNode, visit: VisitPath): void {
  switch (node.kind) {
    case 'literal':
      return;
    case 'list':
      for (const item of node.items) visitNode(item, visit);
      return;
    case 'object':
      for (const [, value] of node.entries) visitNode(value, visit);
      return;
    case 'expression':
      visitExpression(node.expression, certain, (path, place) =>
        visit(path, { ...place, pointer: node.pointer }),
      );
      return;
    case 'text':
      for (const part of node.parts) {
        if (typeof part === 'string') continue;
        visitExpression(part, certain, (path, place) => visit(path, { ...place, pointer: node.pointer }));
      }
  }
}

type VisitInExpression = (path: Path, place: VisitPlace) => void;

/** Whether a filter covers a missing value, as `??` does. */
export function hasDefault(filters: readonly FilterCall[]): boolean {
  return filters.some(({ name }) => name === 'default');
}

interface VisitPlace {
  readonly optional: boolean;
  /** The filter that the value of the expression goes through, other than `default`. */
  readonly filter?: FilterCall | undefined;
}

const certain: VisitPlace = { optional: false };

function visitExpression(expression: Expression, place: VisitPlace, visit: VisitInExpression): void {
  const { optional, filter } = place;
  switch (expression.kind) {
    case 'literal':
      return;
    case 'path':
      visit(expression, place);
      return;
    case 'list':
    case 'object':
      for (const part of partsOf(expression)) visitExpression(part, { optional }, visit);
      return;
    case 'filtered':
      visitFiltered(expression, place, visit);
      return;
    case 'otherwise':
      for (const [index, alternative] of expression.alternatives.entries()) {
        const isCovered = optional || index < expression.alternatives.length - 1;
        visitExpression(alternative, { optional: isCovered, filter }, visit);
      }
      return;
    case 'not':
      visitExpression(expression.of, certain, visit);
      return;
    case 'all':
    case 'any':
      for (const operand of expression.of) visitExpression(operand, certain, visit);
      return;
    case 'sum':
    case 'product':
      visitExpression(expression.first, { optional }, visit);
      for (const { right } of expression.rest) visitExpression(right, { optional }, visit);
      return;
    case 'comparison':
      visitExpression(expression.first, certain, visit);
      for (const { right } of expression.rest) visitExpression(right, certain, visit);
  }
}

type Filtered = Extract<Expression, { kind: 'filtered' }>;

function visitFiltered(
  { of, filters }: Filtered,
  { optional, filter }: VisitPlace,
  visit: VisitInExpression,
): void {
  const first = filters.find(({ name }) => name !== 'default') ?? filter;
  visitExpression(of, { optional: optional || hasDefault(filters), filter: first }, visit);
  for (const { name, values = [] } of filters) {
    for (const value of values) visitExpression(value, { optional: optional && name === 'default' }, visit);
  }
}
