import ts from 'typescript';
import { lineOf, type Source, type Violation } from './source.ts';

const mostLines = 40;
/** What is mostly markup is as long as what it shows. */
const mostMarkupLines = 80;
const mostParameters = 3;

type Named = ts.Node & { readonly name?: ts.Node };

/** What a function is called by who reads the file: its own name, else that of what it is given to. */
function nameOf(node: ts.FunctionLikeDeclaration, tree: ts.SourceFile): string {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  if (node.name !== undefined) return node.name.getText(tree);
  const { parent } = node;
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)) return parent.name.getText(tree);
  for (let outer: ts.Node = parent; !ts.isSourceFile(outer); outer = outer.parent) {
    const { name } = outer as Named;
    if (name !== undefined && ts.isIdentifier(name)) return `${name.text}()`;
  }
  return '()';
}

function lengthOf(tree: ts.SourceFile, node: ts.Node): number {
  const start = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line;
  return tree.getLineAndCharacterOfPosition(node.getEnd()).line - start + 1;
}

function listFunctions({ tree }: Source): ts.FunctionLikeDeclaration[] {
  const found: ts.FunctionLikeDeclaration[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      found.push(node as ts.FunctionLikeDeclaration);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

/** A function has at most 40 lines, from its first to its closing one; 80 where it is markup. */
export function checkFunctionLength(sources: readonly Source[]): Violation[] {
  return sources.flatMap((source) => {
    const most = source.file.endsWith('.tsx') ? mostMarkupLines : mostLines;
    return listFunctions(source).flatMap((node) => {
      const lines = lengthOf(source.tree, node);
      if (lines <= most) return [];
      const name = nameOf(node, source.tree);
      return {
        rule: 'function-length',
        subject: `${source.file} ${name}`,
        message: `${source.file}:${lineOf(source, node)} ${name} has ${lines} lines, at most ${most} allowed`,
      };
    });
  });
}

/** A function has at most three parameters; what needs more takes one object. */
export function checkParameters(sources: readonly Source[]): Violation[] {
  return sources.flatMap((source) =>
    listFunctions(source).flatMap((node) => {
      const { length } = node.parameters;
      if (length <= mostParameters) return [];
      const name = nameOf(node, source.tree);
      return {
        rule: 'parameters',
        subject: `${source.file} ${name}`,
        message: `${source.file}:${lineOf(source, node)} ${name} has ${length} parameters, at most ${mostParameters} allowed; take one object`,
      };
    }),
  );
}

function isUntypedFunction(declaration: ts.VariableDeclaration): boolean {
  const { initializer, type } = declaration;
  if (initializer === undefined || type !== undefined) return false;
  return ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer);
}

/** A function at the top of a file is a declaration, unless a declared function type gives it its shape. */
export function checkDeclarations(sources: readonly Source[]): Violation[] {
  return sources.flatMap((source) =>
    source.tree.statements
      .filter(ts.isVariableStatement)
      .flatMap(({ declarationList }) => declarationList.declarations.filter(isUntypedFunction))
      .map((declaration) => {
        const name = declaration.name.getText(source.tree);
        return {
          rule: 'declarations',
          subject: `${source.file} ${name}`,
          message: `${source.file}:${lineOf(source, declaration)} ${name} is a function at the top of a file: declare it with "function"`,
        };
      }),
  );
}
