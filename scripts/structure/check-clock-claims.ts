import ts from 'typescript';
import { lineOf, listOuter, type Source, type Violation } from './source.ts';

const leastDeadlineMs = 60_000;
const bounds = /\.(?:toBeLessThan|toBeLessThanOrEqual)$/;
const clock = /\b(?:Date|performance)\.now\(\)/;

/** The file that a node is of, and the constants of that file. */
interface Scope {
  readonly tree: ts.SourceFile;
  readonly constants: ReadonlyMap<string, ts.Expression>;
}

interface Finder {
  /** Only a text that has all of these may break the rule. */
  readonly words: readonly RegExp[];
  /** @returns the fault of a call, or of `new Promise` */
  readonly find: (node: ts.CallExpression | ts.NewExpression, scope: Scope) => string | null;
}

function calls(node: ts.Node, name: RegExp, tree: ts.SourceFile): node is ts.CallExpression {
  return ts.isCallExpression(node) && name.test(node.expression.getText(tree));
}

function some(node: ts.Node, test: (node: ts.Node) => boolean): boolean {
  return test(node) || ts.forEachChild(node, (child) => some(child, test) || undefined) === true;
}

/** In itself, or in a constant of the same file that it names. */
function isSpan(node: ts.Node, { tree, constants }: Scope): boolean {
  const isDifference = (one: ts.Node): boolean =>
    ts.isBinaryExpression(one) &&
    one.operatorToken.kind === ts.SyntaxKind.MinusToken &&
    clock.test(one.getText(tree));
  return some(node, (one) => {
    if (isDifference(one)) return true;
    const known = ts.isIdentifier(one) ? constants.get(one.text) : undefined;
    return known !== undefined && some(known, isDifference);
  });
}

function findBound(node: ts.Node, scope: Scope): string | null {
  const { tree } = scope;
  if (!calls(node, bounds, tree)) return null;
  const { expression: expected } = node.expression as ts.PropertyAccessExpression;
  const isClaim = calls(expected, /^expect$/, tree) && expected.arguments.some((one) => isSpan(one, scope));
  return isClaim ? 'is an upper bound in wall-clock time' : null;
}

function findDeadline(node: ts.Node, { tree }: Scope): string | null {
  const isShort = ts.isCallExpression(node) && node.expression.getText(tree) === 'vi.waitFor';
  if (isShort && node.arguments.length < 2) return 'waits for a second: pass a deadline';
  const deadline = calls(node, /^waitFor$/, tree) ? node.arguments[2] : undefined;
  if (deadline === undefined || !ts.isNumericLiteral(deadline)) return null;
  return Number(deadline.text) < leastDeadlineMs ? `waits for less than ${leastDeadlineMs} ms` : null;
}

function findPause(node: ts.Node, { tree }: Scope): string | null {
  const isPromise = ts.isNewExpression(node) && node.expression.getText(tree) === 'Promise';
  const isPause =
    calls(node, /^(?:sleep|pause)$/, tree) ||
    (isPromise && some(node, (one) => calls(one, /^setTimeout$/, tree)));
  return isPause ? 'waits for a time, not for a condition' : null;
}

const finders: readonly Finder[] = [
  { words: [/\.toBeLessThan/, clock], find: findBound },
  { words: [/\bwaitFor\b/], find: findDeadline },
  { words: [/\b(?:sleep|pause|setTimeout)\b/], find: findPause },
];

function readConstants(tree: ts.SourceFile): ReadonlyMap<string, ts.Expression> {
  const constants = new Map<string, ts.Expression>();
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.initializer !== undefined && ts.isIdentifier(node.name))
      constants.set(node.name.text, node.initializer);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return constants;
}

/** The name of the test, or of the function, that a place is in. */
function placeOf(node: ts.Node, source: Source): string {
  for (const outer of listOuter(source, node)) {
    if ((ts.isFunctionDeclaration(outer) || ts.isMethodDeclaration(outer)) && outer.name !== undefined)
      return outer.name.getText(source.tree);
    if (!ts.isCallExpression(outer) || !/^(?:it|test)\b/.test(outer.expression.getText(source.tree)))
      continue;
    const [name] = outer.arguments;
    if (name !== undefined && ts.isStringLiteralLike(name)) return name.text;
  }
  return '';
}

function findClaims(source: Source, wanted: readonly Finder[]): Violation[] {
  const violations: Violation[] = [];
  const scope = { tree: source.tree, constants: readConstants(source.tree) };
  const visit = (node: ts.Node): void => {
    const faults =
      ts.isCallExpression(node) || ts.isNewExpression(node)
        ? wanted.map(({ find }) => find(node, scope))
        : [];
    for (const fault of faults) {
      if (fault === null) continue;
      const subject = `${source.file} ${placeOf(node, source)}`.trim();
      violations.push({
        rule: 'clock-claims',
        subject,
        message: `${source.file}:${lineOf(source, node)} ${fault} (CONTRIBUTING.md, Tests)`,
      });
    }
    ts.forEachChild(node, visit);
  };
  visit(source.tree);
  return violations;
}

/** A shared machine is slow for reasons of its own: no test claims that little time has passed, or lets some pass. */
export function checkClockClaims(tests: readonly Source[]): Violation[] {
  return tests.flatMap((source) => {
    const wanted = finders.filter(({ words }) => words.every((word) => word.test(source.text)));
    return wanted.length === 0 ? [] : findClaims(source, wanted);
  });
}
