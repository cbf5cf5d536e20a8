import ts from 'typescript';
import { lineOf, type Source, type Violation } from './source.ts';

const leastDeadlineMs = 60_000;
const bounds = /\.(?:toBeLessThan|toBeLessThanOrEqual)$/;
const clock = /\b(?:Date|performance)\.now\(\)/;

type Finder = (node: ts.Node, constants: ReadonlyMap<string, ts.Expression>) => string | null;

function calls(node: ts.Node, name: RegExp): node is ts.CallExpression {
  return ts.isCallExpression(node) && name.test(node.expression.getText());
}

function some(node: ts.Node, test: (node: ts.Node) => boolean): boolean {
  return test(node) || ts.forEachChild(node, (child) => some(child, test) || undefined) === true;
}

/** In itself, or in a constant of the same file that it names. */
function isSpan(node: ts.Node, constants: ReadonlyMap<string, ts.Expression>): boolean {
  const isDifference = (one: ts.Node): boolean =>
    ts.isBinaryExpression(one) &&
    one.operatorToken.kind === ts.SyntaxKind.MinusToken &&
    clock.test(one.getText());
  return some(node, (one) => {
    if (isDifference(one)) return true;
    const known = ts.isIdentifier(one) ? constants.get(one.text) : undefined;
    return known !== undefined && some(known, isDifference);
  });
}

const findBound: Finder = (node, constants) => {
  if (!calls(node, bounds)) return null;
  const { expression: expected } = node.expression as ts.PropertyAccessExpression;
  const isClaim = calls(expected, /^expect$/) && expected.arguments.some((one) => isSpan(one, constants));
  return isClaim ? 'is an upper bound in wall-clock time' : null;
};

const findDeadline: Finder = (node) => {
  const deadline = calls(node, /^waitFor$/) ? node.arguments[2] : undefined;
  if (deadline === undefined || !ts.isNumericLiteral(deadline)) return null;
  return Number(deadline.text) < leastDeadlineMs ? `waits for less than ${leastDeadlineMs} ms` : null;
};

const findPause: Finder = (node) => {
  const isPromise = ts.isNewExpression(node) && node.expression.getText() === 'Promise';
  const isPause =
    calls(node, /^(?:sleep|pause)$/) || (isPromise && some(node, (one) => calls(one, /^setTimeout$/)));
  return isPause ? 'waits for a time, not for a condition' : null;
};

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
function placeOf(node: ts.Node): string {
  for (let outer = node.parent; !ts.isSourceFile(outer); outer = outer.parent) {
    if ((ts.isFunctionDeclaration(outer) || ts.isMethodDeclaration(outer)) && outer.name !== undefined)
      return outer.name.getText();
    if (!ts.isCallExpression(outer) || !/^(?:it|test)\b/.test(outer.expression.getText())) continue;
    const [name] = outer.arguments;
    if (name !== undefined && ts.isStringLiteralLike(name)) return name.text;
  }
  return '';
}

/** A shared machine is slow for reasons of its own: no test claims that little time has passed, or lets some pass. */
export function checkClockClaims(tests: readonly Source[]): Violation[] {
  return tests.flatMap((source) => {
    const violations: Violation[] = [];
    const constants = readConstants(source.tree);
    const visit = (node: ts.Node): void => {
      for (const find of [findBound, findDeadline, findPause]) {
        const fault = find(node, constants);
        if (fault === null) continue;
        const subject = `${source.file} ${placeOf(node)}`.trim();
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
  });
}
