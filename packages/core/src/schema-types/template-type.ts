/**
 * Compares a template with the required type of its value. Keys are never templates, so the keys of an object are known
 * before evaluation; for everything else, only types are compared.
 *
 * Also finds the result types of a template's expressions; each is checked and reported once.
 */

import type { Json } from '../contracts/primitives.ts';
import { type Expression, formatPath } from '../expression/ast.ts';
import type { TemplateNode } from '../expression/template.ts';
import { extendPointer, isList } from '../json/values.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { describeType, typeOfFields, typeOfItems, typeOfValue } from './combine-types.ts';
import { offsetOf, operandFault, typeOfExpression } from './expression-type.ts';
import { someValue, suggestKey, type TypeContext, type TypeFault } from './path-type.ts';
import {
  anyType,
  type Effort,
  isKind,
  kinds,
  overlapOf,
  scalarKinds,
  stringType,
  type ValueType,
} from './value-type.ts';

interface TemplateContext extends Omit<TypeContext, 'report'> {
  /** @param pointer of the string in the definition */
  readonly report: (pointer: string, fault: TypeFault) => void;
}

/** The type of each string with expressions. */
export type TemplateTypes = ReadonlyMap<TemplateNode, ValueType>;

export function typeTemplate(root: TemplateNode, context: TemplateContext): TemplateTypes {
  const types = new Map<TemplateNode, ValueType>();
  visit(root, context, types);
  return types;
}

function visit(node: TemplateNode, context: TemplateContext, types: Map<TemplateNode, ValueType>): void {
  switch (node.kind) {
    case 'literal':
      return;
    case 'list':
      for (const item of node.items) visit(item, context, types);
      return;
    case 'object':
      for (const [, value] of node.entries) visit(value, context, types);
      return;
    case 'expression':
      types.set(node, typeOfExpression(node.expression, at(context, node.pointer)).type);
      return;
    case 'text':
      checkText(node, at(context, node.pointer));
      types.set(node, node.parts.length === 0 ? anyType : stringType);
  }
}

function at({ startOf, effort, report }: TemplateContext, pointer: string): TypeContext {
  return { startOf, effort, report: (fault) => report(pointer, fault) };
}

function checkText({ parts }: Extract<TemplateNode, { kind: 'text' }>, context: TypeContext): void {
  for (const part of parts) {
    if (typeof part === 'string') continue;
    const { type } = typeOfExpression(part, context);
    if (type.kinds === 0 || isKind(type, scalarKinds)) continue;
    const rule = 'text takes strings, numbers and booleans';
    context.report(operandFault(part, someValue(type), { rule, suggestion: 'use ?? "" or | json' }));
  }
}

/** The type of the value of any part of the template. */
export function typeOfNode(node: TemplateNode, types: TemplateTypes): ValueType {
  switch (node.kind) {
    case 'literal':
      return typeOfValue(node.value);
    case 'list':
      return typeOfItems(node.items.map((item) => () => typeOfNode(item, types)));
    case 'object':
      return typeOfFields(new Map(node.entries.map(([key, value]) => [key, () => typeOfNode(value, types)])));
    case 'expression':
    case 'text':
      return types.get(node) ?? anyType;
  }
}

interface FitFault {
  readonly severity: 'error' | 'warning';
  readonly code: 'property_missing' | 'property_unknown' | 'type_mismatch';
  /** Pointer into the value of the template. */
  readonly pointer: string;
  readonly message: string;
  readonly offset?: number | undefined;
  readonly suggestion?: string | undefined;
}

interface FitContext {
  readonly types: TemplateTypes;
  /** The consumer of the value, for messages. */
  readonly consumer: string;
  readonly effort: Effort;
  readonly report: (fault: FitFault) => void;
}

/** A part of the value that the consumer accepts. */
interface Slot {
  readonly expected: ValueType;
  readonly pointer: string;
}

/** A part of a template, or a JSON value that it contains unchanged. */
type TemplatePart = { readonly node: TemplateNode } | { readonly value: Json };

export function fitTemplate(root: TemplateNode, expected: ValueType, context: FitContext): void {
  fitPart({ node: root }, { expected, pointer: '' }, context);
}

function fitPart(part: TemplatePart, slot: Slot, context: FitContext): void {
  if (slot.expected === anyType) return;
  const entries = entriesOf(part);
  const items = entries === null ? itemsOf(part) : null;
  if (entries !== null) fitObject(entries, slot, context);
  else if (items !== null) fitList(items, slot, context);
  else fitWhole(part, slot, context);
}

function entriesOf(part: TemplatePart): readonly (readonly [string, TemplatePart])[] | null {
  const value = literalOf(part);
  if (value !== undefined) {
    if (typeof value !== 'object' || value === null || isList(value)) return null;
    return Object.entries(value).map(([key, field]) => [key, { value: field }]);
  }
  if (!('node' in part) || part.node.kind !== 'object') return null;
  return part.node.entries.map(([key, node]) => [key, { node }]);
}

function itemsOf(part: TemplatePart): readonly TemplatePart[] | null {
  const value = literalOf(part);
  if (value !== undefined) {
    return typeof value === 'object' && value !== null && isList(value)
      ? value.map((item) => ({ value: item }))
      : null;
  }
  return 'node' in part && part.node.kind === 'list' ? part.node.items.map((node) => ({ node })) : null;
}

function literalOf(part: TemplatePart): Json | undefined {
  if ('value' in part) return part.value;
  return part.node.kind === 'literal' ? part.node.value : undefined;
}

function typeOfPart(part: TemplatePart, { types }: FitContext): ValueType {
  return 'value' in part ? typeOfValue(part.value) : typeOfNode(part.node, types);
}

/** Whether it obviously fits: its kind is allowed, and single values are not restricted. */
function isPlainFit(part: TemplatePart, expected: ValueType): boolean {
  const value = literalOf(part);
  if (typeof value === 'string') return isKind(expected, kinds.string) && expected.strings === null;
  if (typeof value === 'boolean') return isKind(expected, value ? kinds.true : kinds.false);
  return value === null && isKind(expected, kinds.null);
}

function fitObject(
  entries: readonly (readonly [string, TemplatePart])[],
  slot: Slot,
  context: FitContext,
): void {
  const { expected, pointer } = slot;
  if (!isKind(expected, kinds.object)) {
    mismatch('an object', slot, context);
    return;
  }
  const { object } = expected;
  const present = new Set(entries.map(([key]) => key));
  for (const name of object.required) {
    if (present.has(name)) continue;
    const message = `${context.consumer} requires ${JSON.stringify(name)}`;
    context.report({
      severity: 'error',
      code: 'property_missing',
      pointer: extendPointer(pointer, name),
      message,
    });
  }
  for (const [key, value] of entries) {
    const { type, presence } = object.property(key);
    if (presence === 'never') reportUnknown(key, slot, context);
    else fitPart(value, { expected: type, pointer: extendPointer(pointer, key) }, context);
  }
}

const shownNames = 12;

function reportUnknown(key: string, { expected, pointer }: Slot, context: FitContext): void {
  const names = [...expected.object.names()].filter(
    (name) => expected.object.property(name).presence !== 'never',
  );
  const more = names.length > shownNames ? ` and ${names.length - shownNames} more` : '';
  const allowed = names.length === 0 ? 'no keys' : names.slice(0, shownNames).join(', ') + more;
  context.report({
    severity: 'error',
    code: 'property_unknown',
    pointer: extendPointer(pointer, key),
    message: `${context.consumer} does not take ${JSON.stringify(key.slice(0, 64))}; it takes ${allowed}`,
    suggestion: suggestKey(expected, key, context),
  });
}

function fitList(items: readonly TemplatePart[], slot: Slot, context: FitContext): void {
  const { expected, pointer } = slot;
  const { list } = expected;
  const seen = `a list of ${items.length} item${items.length === 1 ? '' : 's'}`;
  if (!isKind(expected, kinds.list)) {
    mismatch(seen, slot, context);
    return;
  }
  if (items.length < list.least || items.length > list.most) {
    const most = Number.isFinite(list.most) ? ` to ${list.most}` : ' or more';
    const message = `${context.consumer} takes ${list.least}${most} items here, not ${items.length}`;
    context.report({ severity: 'error', code: 'type_mismatch', pointer, message });
    return;
  }
  for (const [index, item] of items.entries())
    fitPart(item, { expected: list.item(index), pointer: `${pointer}/${index}` }, context);
}

/** A scalar, or the result of an expression. */
function fitWhole(part: TemplatePart, { expected, pointer }: Slot, context: FitContext): void {
  if (isPlainFit(part, expected)) return;
  const type = typeOfPart(part, context);
  if (type.kinds === 0 || type === anyType) return;
  const overlap = overlapOf(type, expected, context.effort);
  if (overlap === 'some') return;
  const expression = 'node' in part && part.node.kind === 'expression' ? part.node.expression : null;
  const subject = expression === null ? 'this' : describeExpression(expression);
  const seen = `${subject} is ${describeType(type)}`;
  const takes = `${context.consumer} takes ${describeType(expected)} here`;
  const offset = expression === null ? undefined : offsetOf(expression);
  if (overlap === 'none') {
    const message = `${takes}; ${seen}${describeDifference(type, expected)}`;
    const suggestion = suggestWord(part, expected);
    context.report({ severity: 'error', code: 'type_mismatch', pointer, offset, message, suggestion });
  } else {
    const message = `${takes}; ${seen}, and nothing but an empty list fits both`;
    context.report({ severity: 'warning', code: 'type_mismatch', pointer, offset, message });
  }
}

/** Suggests a value for a literal that is nearly one of the allowed ones. */
function suggestWord(part: TemplatePart, { strings }: ValueType): string | undefined {
  const value = literalOf(part);
  return typeof value === 'string' && strings !== null ? createNameSuggester(strings)(value) : undefined;
}

function describeExpression(expression: Expression): string {
  return expression.kind === 'path' ? formatPath(expression.root, expression.segments).slice(0, 200) : 'this';
}

/** Describes the difference between objects or lists, whose kind is the same. */
function describeDifference(type: ValueType, expected: ValueType): string {
  const isObject = (type.kinds & expected.kinds & kinds.object) !== 0;
  if (!isObject) return '';
  for (const name of new Set([...expected.object.required, ...type.object.required])) {
    const [own, wanted] = [type.object.property(name), expected.object.property(name)];
    const shown = JSON.stringify(name.slice(0, 64));
    if (own.presence === 'never') return ` that never has ${shown}, which is required`;
    if (wanted.presence === 'never') return ` that always has ${shown}, which is not taken`;
    if (overlapOf(own.type, wanted.type, { left: 100 }) === 'none') {
      return ` whose ${shown} is ${describeType(own.type)}, not ${describeType(wanted.type)}`;
    }
  }
  return '';
}

function mismatch(seen: string, { expected, pointer }: Slot, context: FitContext): void {
  const message = `${context.consumer} takes ${describeType(expected)} here; this is ${seen}`;
  context.report({ severity: 'error', code: 'type_mismatch', pointer, message });
}
