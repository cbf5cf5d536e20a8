/** Which small wrong turns a piece of source can take. A node gives the texts that may replace it. */
import ts from 'typescript';

/** Another text for a node, and what a survivor is listed as. */
export interface Variant {
  readonly text: string;
  readonly label: string;
}

const operators: Readonly<Partial<Record<ts.SyntaxKind, readonly string[]>>> = {
  [ts.SyntaxKind.EqualsEqualsEqualsToken]: ['!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken]: ['==='],
  [ts.SyntaxKind.LessThanToken]: ['<=', '>='],
  [ts.SyntaxKind.LessThanEqualsToken]: ['<', '>'],
  [ts.SyntaxKind.GreaterThanToken]: ['>=', '<='],
  [ts.SyntaxKind.GreaterThanEqualsToken]: ['>', '<'],
  [ts.SyntaxKind.AmpersandAmpersandToken]: ['||'],
  [ts.SyntaxKind.BarBarToken]: ['&&'],
  [ts.SyntaxKind.QuestionQuestionToken]: ['&&'],
  [ts.SyntaxKind.PlusToken]: ['-'],
  [ts.SyntaxKind.MinusToken]: ['+'],
  [ts.SyntaxKind.AsteriskToken]: ['/'],
  [ts.SyntaxKind.SlashToken]: ['*'],
  [ts.SyntaxKind.PercentToken]: ['*'],
  [ts.SyntaxKind.PlusEqualsToken]: ['-='],
  [ts.SyntaxKind.MinusEqualsToken]: ['+='],
};

/** A method beside its opposite; an empty text takes the call away. */
const methods: ReadonlyMap<string, string> = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    filter: '',
    toSorted: '',
    sort: '',
    toReversed: '',
    reverse: '',
    slice: '',
    trim: '',
    trimStart: '',
    trimEnd: '',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
    min: 'max',
    max: 'min',
    floor: 'ceil',
    ceil: 'floor',
    find: 'findLast',
    indexOf: 'lastIndexOf',
    toLowerCase: 'toUpperCase',
    toUpperCase: 'toLowerCase',
  }),
);

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 70 ? `${line.slice(0, 67)}...` : line;
}

function isTextual(node: ts.Node): boolean {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

function binaryVariants(node: ts.BinaryExpression): string[] {
  const { left, operatorToken, right } = node;
  const kind = operatorToken.kind;
  if (kind === ts.SyntaxKind.PlusToken && (isTextual(left) || isTextual(right))) return [];
  // `??` beside `&&` needs them.
  const [one, other] = [left, right].map((side) =>
    ts.isBinaryExpression(side) ? `(${side.getText()})` : side.getText(),
  );
  return (operators[kind] ?? []).map((operator) => `${one} ${operator} ${other}`);
}

function callVariants(node: ts.CallExpression): string[] {
  const callee = node.expression;
  if (!ts.isPropertyAccessExpression(callee) || callee.questionDotToken !== undefined) return [];
  const other = methods.get(callee.name.text);
  if (other === undefined) return [];
  const object = callee.expression.getText();
  if (other === '') return [object];
  return [`${object}.${other}(${node.arguments.map((each) => each.getText()).join(', ')})`];
}

function unaryVariants({ operator, operand }: ts.PrefixUnaryExpression): string[] {
  if (operator === ts.SyntaxKind.ExclamationToken) return [operand.getText()];
  if (operator === ts.SyntaxKind.MinusToken) return [operand.getText()];
  if (operator === ts.SyntaxKind.PlusPlusToken) return [`--${operand.getText()}`];
  if (operator === ts.SyntaxKind.MinusMinusToken) return [`++${operand.getText()}`];
  return [];
}

function postfixVariants({ operator, operand }: ts.PostfixUnaryExpression): string[] {
  return [`${operand.getText()}${operator === ts.SyntaxKind.PlusPlusToken ? '--' : '++'}`];
}

function literalVariants(node: ts.Node): string[] {
  if (node.kind === ts.SyntaxKind.TrueKeyword) return ['false'];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return ['true'];
  if (ts.isNumericLiteral(node)) return [`${node.getText()} + 1`];
  if (ts.isBigIntLiteral(node)) return [`${node.getText()} + 1n`];
  if (ts.isStringLiteralLike(node)) return [node.text === '' ? "'mutant'" : "''"];
  if (ts.isTemplateExpression(node)) return ["''"];
  if (ts.isArrayLiteralExpression(node) && node.elements.length > 0) return ['[]'];
  if (ts.isObjectLiteralExpression(node) && node.properties.length > 0) return ['{}'];
  return [];
}

/** `a?.b` as `a.b`, for the first link of a chain. */
function chainVariants(node: ts.Node): string[] {
  if (!ts.isPropertyAccessExpression(node) || node.questionDotToken === undefined) return [];
  if (ts.isOptionalChain(node.expression)) return [];
  return [`${node.expression.getText()}.${node.name.text}`];
}

function textsFor(node: ts.Node): string[] {
  if (ts.isBinaryExpression(node)) return binaryVariants(node);
  if (ts.isCallExpression(node)) return callVariants(node);
  if (ts.isPrefixUnaryExpression(node)) return unaryVariants(node);
  if (ts.isPostfixUnaryExpression(node)) return postfixVariants(node);
  if (ts.isPropertyAccessExpression(node)) return chainVariants(node);
  return literalVariants(node);
}

/** Whether a node decides which way the program goes; it is then also held at true and at false. */
function answersFor(node: ts.Node): string[] {
  const { parent } = node;
  if (ts.isIfStatement(parent) && parent.expression === node) return ['true', 'false'];
  if (ts.isConditionalExpression(parent) && parent.condition === node) return ['true', 'false'];
  // A loop that never ends is always noticed.
  if (ts.isWhileStatement(parent) && parent.expression === node) return ['false'];
  if (ts.isForStatement(parent) && parent.condition === node) return ['false'];
  return [];
}

function bodyVariants(node: ts.Node): string[] {
  return ts.isArrowFunction(node.parent) && node.parent.body === node ? ['undefined'] : [];
}

/** All texts that may replace an expression, each once. */
export function variantsOf(node: ts.Node): Variant[] {
  const was = node.getText();
  const texts = new Set([...textsFor(node), ...answersFor(node), ...bodyVariants(node)]);
  texts.delete(was);
  return [...texts].map((text) => ({ text, label: `${cut(was)} -> ${cut(text)}` }));
}

/** What is taken away as a whole: a statement that only acts, the body of a function. */
export function removalOf(node: ts.Node): string | null {
  if (ts.isExpressionStatement(node)) return `removed: ${cut(node.getText())}`;
  if (ts.isBlock(node) && ts.isFunctionLike(node.parent) && node.statements.length > 0) {
    return `emptied: ${cut(ts.isFunctionDeclaration(node.parent) ? (node.parent.name?.text ?? '') : node.getText())}`;
  }
  return null;
}
