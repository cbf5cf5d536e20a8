import { isForbiddenName } from '../forbidden-names.ts';
import { createNameSuggester } from '../nearest-name.ts';
import type { Path, Segment } from './ast.ts';
import { acceptSymbol, advance, type Cursor, syntaxError, unexpected } from './cursor.ts';
import { expressionLimits } from './limits.ts';
import { tokenPatterns } from './symbols.ts';
import type { Token } from './tokens.ts';

const plainIndex = new RegExp(`^(?:${tokenPatterns.index})$`);

/** Reads `root.name["key"][0][*]`; the cursor stands on the root's name. */
export function parsePath(cursor: Cursor): Path {
  const root = advance(cursor);
  const { roots, rootHint } = cursor.dialect;
  const name = roots.find((known) => known === root.text);
  if (name === undefined) {
    throw syntaxError(
      cursor,
      `${JSON.stringify(root.text.slice(0, 64))} is no root; there are ${roots.join(', ')}`,
      {
        code: 'root_unknown',
        suggestion: createNameSuggester(roots)(root.text) ?? rootHint,
        at: root.start,
      },
    );
  }
  const segments: Segment[] = [];
  for (;;) {
    const start = cursor.token.start;
    if (acceptSymbol(cursor, '.')) segments.push(parseName(cursor));
    else if (acceptSymbol(cursor, '[')) segments.push(parseBracket(cursor));
    else return { kind: 'path', root: name, segments, offset: root.start };
    if (segments.length > expressionLimits.pathSegments) {
      throw syntaxError(cursor, `the path has more than ${expressionLimits.pathSegments} segments`, {
        code: 'expression_limit',
        at: start,
      });
    }
  }
}

function parseName(cursor: Cursor): string {
  if (cursor.token.kind === 'name') return allowedKey(cursor, advance(cursor));
  const error = unexpected(cursor, 'a name after the dot');
  if (cursor.token.kind === 'bad' || cursor.token.kind === 'end') throw error;
  throw syntaxError(cursor, error.message, { suggestion: 'other keys are written ["key"], list items [0]' });
}

function parseBracket(cursor: Cursor): Segment {
  const segment = parseBracketContent(cursor);
  if (!acceptSymbol(cursor, ']')) throw unexpected(cursor, '] after the index or key');
  return segment;
}

function parseBracketContent(cursor: Cursor): Segment {
  if (acceptSymbol(cursor, '*')) return { each: true };
  if (cursor.token.kind === 'string') return allowedKey(cursor, advance(cursor));
  if (cursor.token.kind !== 'number') throw unexpected(cursor, 'an index, a "key" or * in the brackets');
  const index = advance(cursor);
  if (plainIndex.test(index.text)) return Number(index.text);
  throw syntaxError(cursor, `${index.text.slice(0, 40)} is no index; an index is 0, 1, 2, ...`, {
    at: index.start,
    suggestion: index.text.startsWith('-') ? 'the last item is <list> | last' : undefined,
  });
}

function allowedKey(cursor: Cursor, token: Token): string {
  if (!isForbiddenName(token.text)) return token.text;
  throw syntaxError(cursor, `the name ${token.text} is not allowed`, {
    code: 'name_forbidden',
    at: token.start,
  });
}
