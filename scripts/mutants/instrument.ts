/**
 * A file with all its mutants inside: each asks the switchboard whether it is on. So that thousands of them need one
 * transformed file and one load of the modules, and a test knows which of them it meets.
 */
import ts from 'typescript';
import { removalOf, variantsOf } from './operators.ts';

export interface Mutant {
  readonly id: number;
  /** The same for the same text of a file, wherever its lines are. */
  readonly key: string;
  readonly file: string;
  readonly line: number;
  readonly label: string;
}

interface Draft {
  readonly file: string;
  readonly tree: ts.SourceFile;
  readonly mutants: Mutant[];
  readonly firstId: number;
  readonly seen: Map<string, number>;
}

const ask = 'globalThis.$mutants.at';

function add(draft: Draft, node: ts.Node, label: string): string {
  const { file, tree, mutants, seen } = draft;
  const name = `${file} ${label}`;
  const times = seen.get(name) ?? 0;
  seen.set(name, times + 1);
  const id = draft.firstId + mutants.length;
  const line = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
  mutants.push({ id, key: times === 0 ? name : `${name} #${times + 1}`, file, line, label });
  return `${ask}(${id})`;
}

function isErased(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isTypeParameterDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node)
  );
}

/** The inner links of `a?.b.c` stop together, and `a.b` in `a.b()` hands on its object: neither may be wrapped. */
function isLink(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isCallExpression(parent) && parent.expression === node) return true;
  if (ts.isTaggedTemplateExpression(parent)) return true;
  return ts.isOptionalChain(node) && 'expression' in parent && parent.expression === node && isAccess(parent);
}

function isAccess(node: ts.Node): boolean {
  return (
    ts.isPropertyAccessExpression(node) ||
    ts.isElementAccessExpression(node) ||
    ts.isCallExpression(node) ||
    ts.isNonNullExpression(node)
  );
}

function isAssigned(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isBinaryExpression(parent) && parent.left === node) {
    const { kind } = parent.operatorToken;
    return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
  }
  return ts.isDeleteExpression(parent);
}

function isName(node: ts.Node): boolean {
  const { parent } = node as { parent: ts.Node & { name?: ts.Node; propertyName?: ts.Node } };
  return parent.name === node || parent.propertyName === node;
}

function mayBeWrapped(node: ts.Node): boolean {
  return !isLink(node) && !isAssigned(node) && !isName(node) && !ts.isStatement(node);
}

function writeChildren(draft: Draft, node: ts.Node): string {
  const { tree } = draft;
  let text = '';
  let at = node.getStart(tree);
  ts.forEachChild(node, (child) => {
    text += tree.text.slice(at, child.getStart(tree)) + write(draft, child);
    at = child.end;
  });
  return text + tree.text.slice(at, node.end);
}

function write(draft: Draft, node: ts.Node): string {
  if (isErased(node)) return node.getText(draft.tree);
  const removed = removalOf(node);
  if (removed !== null) {
    const question = add(draft, node, removed);
    const rest = writeChildren(draft, node);
    return ts.isBlock(node) ? `{ if (${question}) return;${rest.slice(1)}` : `{ if (!${question}) ${rest} }`;
  }
  const variants = mayBeWrapped(node) ? variantsOf(node) : [];
  const questions = variants.map(({ text, label }) => `${add(draft, node, label)} ? (${text}) : `);
  const rest = writeChildren(draft, node);
  return questions.length === 0 ? rest : `(${questions.join('')}${rest})`;
}

export function instrument(
  file: string,
  text: string,
  firstId: number,
): { readonly code: string; readonly mutants: readonly Mutant[] } {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const draft: Draft = { file, tree, mutants: [], firstId, seen: new Map() };
  const code = text.slice(0, tree.getStart(tree)) + writeChildren(draft, tree);
  return { code, mutants: draft.mutants };
}
