/**
 * Where a character of a string's value stands in the text. Exact for plain and quoted strings and for
 * literal blocks; the start of the string where the text was folded.
 */
import type { SourceNode } from './source-node.ts';

export function locateInString(text: string, { value, start, end }: SourceNode, offset: number): number {
  if (typeof value !== 'string' || offset === 0) return start;
  const written = text.slice(start, end);
  const verbatim = written.indexOf(value);
  if (verbatim >= 0) return start + verbatim + offset;
  return start + (written.startsWith('"') ? skipEscaped(written, offset) : findLine(written, value, offset));
}

const escapeLengths: Readonly<Record<string, number>> = { u: 6, x: 4, U: 10 };

/** A double-quoted string with escapes, each of which stands for one unit. */
function skipEscaped(written: string, offset: number): number {
  let at = 1;
  for (let unit = 0; unit < offset && at < written.length; unit++) {
    at += written[at] === '\\' ? (escapeLengths[written[at + 1] ?? ''] ?? 2) : 1;
  }
  return Math.min(at, written.length - 1);
}

/** A block scalar: its lines stand in the text as they are, behind an indentation. */
function findLine(written: string, value: string, offset: number): number {
  const lineStart = value.lastIndexOf('\n', offset - 1) + 1;
  const lineEnd = value.indexOf('\n', offset);
  const line = value.slice(lineStart, lineEnd < 0 ? undefined : lineEnd);
  const at = written.indexOf(line);
  return at < 0 ? 0 : at + offset - lineStart;
}
