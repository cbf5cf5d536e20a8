/**
 * The YAML library's parser with a depth limit, and its errors in words. Its composer is recursive, and a text that is
 * deep enough to overflow the stack there can end the process, which no handler catches. Its parser is not recursive.
 */
import { Composer, type CST, type Document, type ErrorCode, Lexer, Parser, YAMLParseError } from 'yaml';
import { type SourceProblem, sourceLimits } from './source-node.ts';

type ComposedYaml =
  | { readonly document: Document.Parsed }
  /** Offset where the text nests too deep. */
  | { readonly tooDeepAt: number };

/** The document itself, and a scalar in the deepest container. */
const deepestStack = sourceLimits.depth + 3;

export function composeYaml(text: string): ComposedYaml {
  const tokens: CST.Token[] = [];
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > deepestStack) return { tooDeepAt: parser.offset };
  }
  for (const token of parser.end()) tokens.push(token);
  const composer = new Composer({
    schema: 'core',
    version: '1.2',
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'error',
  });
  const [document, second] = composer.compose(tokens, true, text.length);
  if (document === undefined) throw new RangeError('the composer made no document');
  if (second !== undefined) {
    const [start, end] = second.range;
    document.errors.push(new YAMLParseError([start, end], 'MULTIPLE_DOCS', 'several documents'));
  }
  return { document };
}

// The YAML library's errors in words for the author of a pipeline.

const shownErrors = 50;

export function unquotedExpression(pointer: string, at: number, written: string): SourceProblem {
  return {
    code: 'yaml_unquoted_expression',
    pointer,
    at,
    message: 'YAML reads {{ }} without quotes as a map; quote it',
    suggestion: `write ${quote(written.slice(0, 200))}`,
  };
}

function quote(written: string): string {
  return written.includes('"') && !written.includes("'") ? `'${written}'` : JSON.stringify(written);
}

/**
 * Errors, and warnings for unknown tags; one for each place. Only the first syntax error is reported, and none after
 * another error: after a single typo, the parser reports many more.
 */
export function readYamlErrors(text: string, document: Document.Parsed): SourceProblem[] {
  const problems = new Map<number, SourceProblem>();
  for (const error of [...document.errors, ...document.warnings].slice(0, shownErrors)) {
    const problem = translate(text, error);
    const isConsequence = problem.code === 'yaml_syntax' && problems.size > 0;
    if (!isConsequence && !problems.has(problem.at)) problems.set(problem.at, problem);
  }
  return [...problems.values()];
}

/** Replaces the library's terms: scalars, flows and mappings. */
const plainWords: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_DQ_ESCAPE: 'in double quotes a backslash begins an escape; use single quotes, or write two backslashes',
  BAD_INDENT: 'this line is indented by more or fewer spaces than the lines that it belongs to',
  BAD_SCALAR_START: 'a text cannot begin with this character; put the text in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a second key begins on this line; put it on its own line, or put a text that holds a colon in quotes',
  BLOCK_IN_FLOW: 'between brackets or braces, lists and keys are separated by commas and not by lines',
  KEY_OVER_1024_CHARS: 'a key has more than 1,024 characters; a quote may be missing',
  MISSING_CHAR: 'a quote, bracket, brace, comma or colon is missing here or before',
  MULTILINE_IMPLICIT_KEY:
    'a key is followed by a colon on its own line; a colon or a quote may be missing before',
  UNEXPECTED_TOKEN: 'this does not belong here; a quote, bracket, comma or colon may be missing before',
};

function translate(
  text: string,
  error: Document.Parsed['errors'][number] | Document.Parsed['warnings'][number],
): SourceProblem {
  const [at] = error.pos;
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return { code: 'yaml_tab', pointer: '', at, message: 'YAML is indented with spaces, not with tabs' };
    case 'MULTIPLE_DOCS':
      return {
        code: 'yaml_several_documents',
        pointer: '',
        at,
        message: 'the text holds several YAML documents, one is allowed',
      };
    case 'TAG_RESOLVE_FAILED':
      return {
        code: 'yaml_tag',
        pointer: '',
        at,
        message: `${error.message}; a definition holds JSON values only`,
      };
    case 'RESOURCE_EXHAUSTION':
      return { code: 'too_deep', pointer: '', at, message: 'the text nests too deep' };
    default:
      return (
        findUnquoted(text, at) ??
        findInlineList(text, at) ?? {
          code: 'yaml_syntax',
          pointer: '',
          at,
          message: plainWords[error.code] ?? error.message,
        }
      );
  }
}

function lineAt(text: string, at: number): { readonly start: number; readonly line: string } {
  const start = text.lastIndexOf('\n', at - 1) + 1;
  const end = text.indexOf('\n', at);
  return { start, line: text.slice(start, end < 0 ? undefined : end).trimEnd() };
}

/** A list that begins behind its key, on the same line. */
function findInlineList(text: string, at: number): SourceProblem | undefined {
  const { start, line } = lineAt(text, at);
  const found = /^\s*(?:- )?([\w-]+):\s+(?=- )/.exec(line);
  if (found === null) return undefined;
  const message = `the list of ${found[1]} begins on the line after its key: put the dash there`;
  return { code: 'yaml_syntax', pointer: '', at: start + found[0].length, message };
}

/** The cause of most syntax errors on a line with an unquoted `{{`. */
function findUnquoted(text: string, at: number): SourceProblem | undefined {
  const { start: lineStart, line } = lineAt(text, at);
  const open = /(?:^|[:\-,[{])\s*(?=\{\{)/.exec(line);
  if (open === null) return undefined;
  const expressionAt = open.index + open[0].length;
  return unquotedExpression('', lineStart + expressionAt, line.slice(expressionAt));
}
