/** The types of what a template's expressions yield; each is looked at, and told of, once. */
import type { TemplateNode } from '../expression/template.ts';
import { reportOperand, typeOfExpression } from './expression-type.ts';
import { typeOfFields, typeOfItems, typeOfValue } from './json-value-type.ts';
import { someValue, type TypeContext, type TypeFault } from './typed-value.ts';
import { anyType, isKind, scalarKinds, stringType, type ValueType } from './value-type.ts';

export interface TemplateContext extends Omit<TypeContext, 'report'> {
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
      types.set(node, stringType);
  }
}

function at({ startOf, effort, report }: TemplateContext, pointer: string): TypeContext {
  return {
    startOf,
    effort,
    report: (fault) => report(pointer, fault),
  };
}

function checkText({ parts }: Extract<TemplateNode, { kind: 'text' }>, context: TypeContext): void {
  for (const part of parts) {
    if (typeof part === 'string') continue;
    const { type } = typeOfExpression(part, context);
    if (type.kinds === 0 || isKind(type, scalarKinds)) continue;
    const rule = 'text takes strings, numbers and booleans';
    reportOperand(part, someValue(type), rule, context, 'use ?? "" or | json');
  }
}

/** The type of what any part of the template evaluates to. */
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
