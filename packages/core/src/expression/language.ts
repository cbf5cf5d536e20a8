/** Constants of the expression language: its signs, roots, bounds and errors. */

/** The one list of words and signs: the tokens, the parser and the published grammar read it. */
export const comparisonOperators = ['==', '!=', '<=', '>=', '<', '>', 'in'] as const;
export type ComparisonOperator = (typeof comparisonOperators)[number];

export const operators = { otherwise: '??', filter: '|', any: '||', all: '&&', not: '!' } as const;

/** By precedence: those of a product bind more tightly. `*` is also used in `[*]`. */
export const arithmeticOperators = { sum: ['+', '-'], product: ['*', '/'] } as const;
export type ArithmeticOperator = (typeof arithmeticOperators)['sum' | 'product'][number];

const punctuation = ['.', '[', ']', '(', ')', ',', '{', '}', ':'] as const;

export const keywords: ReadonlyMap<string, null | boolean> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
]);

export const delimiters = { open: '{{', close: '}}' } as const;

/** Sources of regular expressions. */
export const tokenPatterns = {
  name: '[A-Za-z_][A-Za-z0-9_-]*',
  number: String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`,
  index: '0|[1-9][0-9]{0,14}',
} as const;

/** Signs that are not words; longest first, so that `||` is never two filters. */
export const signs: readonly string[] = [
  ...Object.values(operators),
  ...comparisonOperators.filter((operator) => operator !== 'in'),
  ...arithmeticOperators.sum,
  ...arithmeticOperators.product,
  ...punctuation,
].sort((a, b) => b.length - a.length);

/** Roots of paths, and the fields below the roots whose shape Capstan owns. */
export const rootNames = ['job', 'steps', 'run', 'item', 'index', 'round', 'secrets'] as const;
export type RootName = (typeof rootNames)[number];

/** `steps.<id>.<field>` */
export const stepFields = ['output', 'status', 'error', 'cost_usd'] as const;

const scheduled = ['scheduled_at', 'scheduled_date', 'period_start', 'period_end'] as const;

/** `run.<field>` */
export const runFields = ['id', 'job_id', 'attempt', 'pipeline', 'version', ...scheduled] as const;

/** Those of a run that a schedule starts. */
export const scheduledFields: ReadonlySet<string> = new Set(scheduled);

/** `round.<field>` */
export const roundFields = ['index', 'previous', 'output'] as const;

export function isRootName(name: string): name is RootName {
  return (rootNames as readonly string[]).includes(name);
}

/** The root of paths to the answer of an item, in the condition that judges it. */
export const answerRootName = 'output';

/** Roots of paths in a skill's template: the failing input, and the named groups of the error. */
export const skillRootNames = ['input', 'match'] as const;
export type SkillRootName = (typeof skillRootNames)[number];

/** What the filter `tokens` counts for a part that is no text, beside its bytes. */
export const mediaPartTokens = 4_096;

/** Roots of paths in the file of a wrapped capability: the call, the answers of the other side, and where the file is. */
export const wrapRootNames = ['input', 'files', 'answer', 'submitted', 'call', 'folder'] as const;

/** Roots of paths in the templates of a hook: the delivery that it received. */
export const hookRootNames = ['body', 'headers'] as const;

export type AnyRootName =
  | RootName
  | typeof answerRootName
  | SkillRootName
  | (typeof wrapRootNames)[number]
  | (typeof hookRootNames)[number];

/** The text that a secret evaluates to, in place of its value. */
export function secretReference(name: string): string {
  return `[secret ${name}]`;
}

/** Bounds of the form of expressions and values; those of their work are in meter.ts. */
export const expressionLimits = {
  /** Bytes (UTF-8) of one string that holds an expression. */
  stringBytes: 65_536,
  /** Segments after the root of one path. */
  pathSegments: 32,
  /** Nested parentheses, negations, lists and objects; also nested lists and objects of a template. */
  nesting: 64,
  /** Nested lists and objects in a value that becomes a result or a JSON text. */
  valueNesting: 500,
  /** `{{ }}` and conditions in one pipeline definition; core/definition/checks/check-expressions.ts counts them. */
  expressionsPerDefinition: 50_000,
} as const;

export function isLongerThanBytes(text: string, limit: number): boolean {
  return text.length > limit || (text.length * 3 > limit && countBytes(text) > limit);
}

/** Bytes (UTF-8) of a text. */
export function countBytes(text: string): number {
  let bytes = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else if (code < 0xd800 || code > 0xdbff || (text.charCodeAt(at + 1) & 0xfc00) !== 0xdc00) bytes += 3;
    else {
      bytes += 4; // a pair
      at++;
    }
  }
  return bytes;
}

/** The end of paths and addresses. A loop, since a regular expression may look at a row of slashes again and again. */
export function withoutEndSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end--;
  return text.slice(0, end);
}

/** The two errors of the expression language. Callers turn them into findings or AppErrors. */
export type ExpressionErrorCode =
  | 'expression_syntax'
  | 'expression_limit'
  | 'root_unknown'
  | 'filter_unknown'
  | 'name_forbidden';

interface SyntaxFault {
  readonly code: ExpressionErrorCode;
  /** JSON Pointer of the string that holds the expression. */
  readonly pointer: string;
  /** Position in that string, in UTF-16 units. */
  readonly offset: number;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** Thrown while compiling: the text is not a template. */
export class ExpressionSyntaxError extends Error {
  override readonly name = 'ExpressionSyntaxError';
  readonly code: ExpressionErrorCode;
  readonly pointer: string;
  readonly offset: number;
  readonly suggestion: string | undefined;

  constructor(fault: SyntaxFault) {
    super(fault.message);
    this.code = fault.code;
    this.pointer = fault.pointer;
    this.offset = fault.offset;
    this.suggestion = fault.suggestion;
  }
}

/**
 * Thrown while evaluating: a path is missing or a value has the wrong type. The message names keys and types, never
 * values. Services turn it into `expression_unresolved`.
 */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
  readonly pointer: string;
  readonly suggestion: string | undefined;
  /** It would take more work than its meter allows. */
  readonly isTooLarge: boolean;

  constructor(fault: {
    pointer: string;
    message: string;
    suggestion?: string | undefined;
    isTooLarge?: boolean;
  }) {
    super(fault.message);
    this.pointer = fault.pointer;
    this.suggestion = fault.suggestion;
    this.isTooLarge = fault.isTooLarge ?? false;
  }
}
