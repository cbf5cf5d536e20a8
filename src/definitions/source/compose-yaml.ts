/**
 * The YAML library's parse, with an eye on depth: its composer calls itself for every level, and a text that is deep
 * enough to overflow the stack there can end the process, which no handler sees. Its parser does not call itself.
 */
import { Composer, type CST, type Document, Lexer, Parser, YAMLParseError } from 'yaml';
import { sourceLimits } from './source-node.ts';

export type ComposedYaml =
  | { readonly document: Document.Parsed }
  /** Where it nests too deep. */
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
