/** What a template mentions, without evaluating it. */
import type { Expression, Path, Segment } from './ast.ts';
import { isRootName, type RootName } from './roots.ts';
import type { CompiledTemplate, TemplateNode } from './template.ts';

export interface Reference {
  readonly root: RootName;
  readonly segments: readonly Segment[];
  /** A missing value is covered by `??`. */
  readonly optional: boolean;
  /** JSON Pointer of the string, and where in it the path starts in UTF-16 units. */
  readonly pointer: string;
  readonly offset: number;
}

/** Every path of a pipeline definition's template, in the order of the text. */
export function references(template: CompiledTemplate): Reference[] {
  const found: Reference[] = [];
  visitNode(template.root, (path, optional, pointer) => {
    if (!isRootName(path.root)) return;
    found.push({ root: path.root, segments: path.segments, optional, pointer, offset: path.offset });
  });
  return found;
}

/** Whether its value depends on the scope at all. */
export function hasReference(template: CompiledTemplate): boolean {
  let found = false;
  visitNode(template.root, () => {
    found = true;
  });
  return found;
}

/** Ids of the steps that are mentioned, each once, in the order of the text. */
export function referencedSteps(template: CompiledTemplate): string[] {
  const ids = new Set<string>();
  visitNode(template.root, ({ root, segments: [first] }) => {
    if (root === 'steps' && typeof first === 'string') ids.add(first);
  });
  return [...ids];
}

type VisitPath = (path: Path, optional: boolean, pointer: string) => void;

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
      visitExpression(node.expression, false, (path, optional) => visit(path, optional, node.pointer));
      return;
    case 'text':
      for (const part of node.parts) {
        if (typeof part === 'string') continue;
        visitExpression(part, false, (path, optional) => visit(path, optional, node.pointer));
      }
  }
}

type VisitInExpression = (path: Path, optional: boolean) => void;

function visitExpression(expression: Expression, optional: boolean, visit: VisitInExpression): void {
  switch (expression.kind) {
    case 'literal':
      return;
    case 'path':
      visit(expression, optional);
      return;
    case 'filtered':
      visitExpression(expression.of, optional, visit);
      return;
    case 'otherwise':
      for (const [index, alternative] of expression.alternatives.entries()) {
        visitExpression(alternative, optional || index < expression.alternatives.length - 1, visit);
      }
      return;
    case 'not':
      visitExpression(expression.of, false, visit);
      return;
    case 'all':
    case 'any':
      for (const operand of expression.of) visitExpression(operand, false, visit);
      return;
    case 'comparison':
      visitExpression(expression.first, false, visit);
      for (const { right } of expression.rest) visitExpression(right, false, visit);
  }
}
