import ts from 'typescript';
import { lineOf, listOuter, type Source, type Violation } from './source.ts';

const mostLines = 40;
/** What is mostly markup is as long as what it shows. */
const mostMarkupLines = 80;

type Named = ts.Node & { readonly name?: ts.Node };

/** What a function is called by who reads the file: its own name, else that of what it is given to. */
function nameOf(node: ts.FunctionLikeDeclaration, source: Source): string {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  if (node.name !== undefined) return node.name.getText(source.tree);
  const outer = listOuter(source, node);
  const [parent] = outer;
  if (parent !== undefined && (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)))
    return parent.name.getText(source.tree);
  for (const { name } of outer as readonly Named[]) {
    if (name !== undefined && ts.isIdentifier(name)) return `${name.text}()`;
  }
  return '()';
}

function lengthOf(tree: ts.SourceFile, node: ts.Node): number {
  const start = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line;
  return tree.getLineAndCharacterOfPosition(node.getEnd()).line - start + 1;
}

function findFunctions({ tree }: Source): ts.FunctionLikeDeclaration[] {
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

/**
 * A function has at most 40 lines, from its first to its closing one; 80 where it is markup. Biome's own rule counts no
 * line that begins with a closing brace, and no getter.
 */
export function checkFunctionLength(sources: readonly Source[]): Violation[] {
  return sources.flatMap((source) => {
    const most = source.file.endsWith('.tsx') ? mostMarkupLines : mostLines;
    return findFunctions(source).flatMap((node) => {
      const lines = lengthOf(source.tree, node);
      if (lines <= most) return [];
      const name = nameOf(node, source);
      return {
        rule: 'function-length',
        subject: `${source.file} ${name}`,
        message: `${source.file}:${lineOf(source, node)} ${name} has ${lines} lines, at most ${most} allowed`,
      };
    });
  });
}

function isUntypedFunction(declaration: ts.VariableDeclaration): boolean {
  const { initializer, type } = declaration;
  if (initializer === undefined || type !== undefined) return false;
  return ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer);
}

/** A line that begins a constant, or continues one, and has a function. Without it a file need not be parsed. */
const constantFunction =
  /^(?:\/\*.*\*\/\s*)?(?:export\s+)?(?:declare\s+)?(?:const|let|var)\b(?:.*\n(?=[\s)\]}]))*?.*(?:=>|\bfunction\b)/m;

/** A function at the top of a file is a declaration, unless a declared function type gives it its shape. */
export function checkDeclarations(sources: readonly Source[]): Violation[] {
  const suspects = sources.filter(({ text }) => constantFunction.test(text));
  return suspects.flatMap((source) =>
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
