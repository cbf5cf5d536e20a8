/** The two errors of the expression language; whoever catches them turns them into findings or AppErrors. */
export type ExpressionErrorCode =
  | 'expression_syntax'
  | 'expression_limit'
  | 'root_unknown'
  | 'filter_unknown'
  | 'name_forbidden';

export interface SyntaxFault {
  readonly code: ExpressionErrorCode;
  /** JSON Pointer of the string that holds the expression. */
  readonly pointer: string;
  /** Where in that string, in UTF-16 units. */
  readonly offset: number;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** Thrown while compiling: the text is no template. */
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
 * Thrown while evaluating: a path is missing or a value has the wrong type. Names keys and types, never
 * values. Services turn it into `expression_unresolved`.
 */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';
  readonly pointer: string;
  readonly suggestion: string | undefined;

  constructor(fault: { pointer: string; message: string; suggestion?: string | undefined }) {
    super(fault.message);
    this.pointer = fault.pointer;
    this.suggestion = fault.suggestion;
  }
}
