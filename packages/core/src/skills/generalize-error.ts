/**
 * Makes a pattern of one error. It takes the line that states the fault, with its variable parts (URLs, paths, quoted
 * text, numbers, names with digits) as classes and the rest unchanged. Numbers and quoted texts become the groups g1,
 * g2, … for templates. Those in a list do not, because it is unknown which is meant. The pattern matches the error it
 * was made from, and never the empty string.
 */
import { RE2JS } from 're2js';
import { findTextFault, matchPatterns, patternLimits, readPatterns, readWindows } from './pattern.ts';

/** The last match counts, because errors are wrapped from the outside in. */
const errorLike =
  /error|fail|invalid|exception|unsupported|not (?:found|allowed|supported)|cannot|can't|must|expected|denied|refused|missing|unknown|illegal/i;

/** @returns the text of the pattern, or null when the error has no distinctive text */
export function generalizeError(error: string): string | null {
  const lines = readWindows(error).flatMap((window) => window.split('\n').map(trimLine));
  const said = lines.filter((line) => line !== '');
  const line = said.findLast((candidate) => errorLike.test(candidate)) ?? said.at(-1);
  if (line === undefined) return null;
  const pattern = writePattern(line);
  const reading = readPatterns([pattern]);
  return reading.ok && matchPatterns(reading.patterns, error) !== null ? pattern : null;
}

/** Trims white space as RE2 defines it. */
function trimLine(line: string): string {
  return line.replace(/^[\t\f\r ]+|(?<![\t\f\r ])[\t\f\r ]+$/g, '');
}

interface ErrorPart {
  readonly kind: 'quoted' | 'url' | 'path' | 'number' | 'name' | 'space' | 'text';
  readonly text: string;
}

/** The first pattern that matches at a position wins. */
const partPatterns: readonly (readonly [ErrorPart['kind'], RegExp])[] = [
  ['space', /[\t\f\r ]+/y],
  ['text', /(?<=[{,][\t ]*)"[A-Za-z0-9_]{1,40}"(?=[\t ]*:)/y], // a JSON key locates the error
  ['quoted', /"[^"\n]*"|`[^`\n]*`|(?<![A-Za-z0-9])'[^'\n]*'(?![A-Za-z0-9])/y],
  ['url', /[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\t\f\r "'`<>)\]}]+/y],
  ['text', /(?<![A-Za-z0-9_~./])\/[A-Za-z_-]{1,40}(?![A-Za-z0-9_@+%~/\\-]|\.[A-Za-z0-9])/y], // one segment names a field
  ['path', /(?<![A-Za-z0-9_])(?:[A-Za-z]:\\|~?\.{0,2}\/)[A-Za-z0-9_@+%~./\\-]+/y],
  ['number', /(?<![A-Za-z0-9_.])-?[0-9]+(?:\.[0-9]+)?(?![A-Za-z0-9_]|[.-][A-Za-z0-9])/y],
  ['name', /(?<![A-Za-z0-9_])(?=[A-Za-z0-9_.-]*[0-9])[A-Za-z0-9_][A-Za-z0-9_.-]*/y],
  ['text', /[A-Za-z0-9_]{1,40}/y],
  ['text', /[\s\S]/uy],
];

function splitLine(line: string): ErrorPart[] {
  const parts: ErrorPart[] = [];
  for (let at = 0; at < line.length; ) {
    const found = readPart(line, at);
    parts.push(found);
    at += found.text.length;
  }
  return parts;
}

/** The quoted text is the message itself, not a value in it. */
function isSentence(quoted: string): boolean {
  return quoted.split(' ').length > 3 || errorLike.test(quoted);
}

function readPart(line: string, at: number): ErrorPart {
  for (const [kind, pattern] of partPatterns) {
    pattern.lastIndex = at;
    const text = pattern.exec(line)?.[0];
    if (text !== undefined && !(kind === 'quoted' && isSentence(text))) return { kind, text };
  }
  return { kind: 'text', text: line.slice(at) };
}

function isValue({ kind }: ErrorPart): boolean {
  return kind === 'quoted' || kind === 'number';
}

/** Values with nothing but commas and conjunctions between them: `"mp4", "webm" or "ogg"`. */
function findListed(parts: readonly ErrorPart[]): ReadonlySet<ErrorPart> {
  const listed = new Set<ErrorPart>();
  let last: ErrorPart | null = null;
  let isJoined = false;
  for (const part of parts) {
    if (isValue(part)) {
      if (last !== null && isJoined) listed.add(last).add(part);
      last = part;
      isJoined = false;
    } else if (/^(?:[,;|/]|or|and)$/i.test(part.text)) {
      isJoined = true;
    } else if (part.kind !== 'space') {
      last = null;
    }
  }
  return listed;
}

/** The whole line, or only its beginning when it is longer than a pattern may be. */
function writePattern(line: string): string {
  const end = '\\s*$';
  let pattern = '(?m)^\\s*';
  let groups = 0;
  const parts = splitLine(line);
  const listed = findListed(parts);
  for (const part of parts) {
    const isGroup = isValue(part) && !listed.has(part);
    const piece = writePart(part, isGroup ? `?<g${groups + 1}>` : '?:');
    if (pattern.length + piece.length + end.length > patternLimits.characters) return pattern;
    if (isGroup) groups++;
    pattern += piece;
  }
  return pattern + end;
}

/** @param group the opening of a value's group */
function writePart({ kind, text }: ErrorPart, group: string): string {
  switch (kind) {
    case 'space':
      return '\\s+';
    case 'quoted': {
      const mark = text[0] ?? '';
      return `${mark}(${group}[^${mark}]*)${mark}`;
    }
    case 'url':
      return '[A-Za-z][A-Za-z0-9+.-]*://\\S+';
    case 'path':
      return '\\S+';
    case 'number':
      return `(${group}-?[0-9]+(?:\\.[0-9]+)?)`;
    case 'name':
      return '[A-Za-z0-9_][A-Za-z0-9_.-]*';
    case 'text':
      return findTextFault(text) === null ? RE2JS.quote(text) : '.';
  }
}
