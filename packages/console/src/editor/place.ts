/**
 * The position of a line of YAML, found by indentation alone: the text around the cursor is invalid most of the time,
 * so no parser is used.
 */

interface YamlLine {
  /** Column of a list item's dash, otherwise of the key. */
  readonly indent: number;
  readonly isItem: boolean;
  readonly keyIndent: number;
  readonly key: string | null;
}

function readLine(text: string): YamlLine | null {
  const form = /^(\s*)((?:-\s+|-$)?)(?:["']?([\w.-]+)["']?\s*:(?:\s|$))?/.exec(text);
  if (form === null || text.trim() === '' || text.trim().startsWith('#')) return null;
  const [, space = '', dash = '', key] = form;
  const keyIndent = space.length + dash.length;
  return { indent: space.length, isItem: dash !== '', keyIndent, key: key ?? null };
}

/** Keys from the top down to the line, `[]` for an item of a list; the line's own key is excluded. */
export function pathAt(lines: readonly string[], at: number): readonly string[] {
  const own = readLine(lines[at] ?? '');
  const path: string[] = own?.isItem ? ['[]'] : [];
  let limit = own?.indent ?? (lines[at] ?? '').length;
  // The key of a list may have the same column as its dashes.
  let isList = own?.isItem ?? false;
  for (let index = at - 1; index >= 0 && (limit > 0 || isList); index--) {
    const line = readLine(lines[index] ?? '');
    if (line === null) continue;
    const { indent, isItem, keyIndent, key } = line;
    if (isItem && keyIndent <= limit && indent < limit) {
      if (keyIndent < limit && key !== null) path.unshift(key);
      path.unshift('[]');
      limit = indent;
      isList = true;
    } else if (!isItem && key !== null && (indent < limit || (isList && indent === limit))) {
      path.unshift(key);
      limit = indent;
      isList = false;
    }
  }
  return path;
}

/** The lines of the step around a line, from its dash to the next one; none outside of `steps`. */
export function stepLines(lines: readonly string[], at: number): readonly string[] {
  const head = lines.findLastIndex((line, index) => index <= at && /^steps:/.test(line));
  const first = lines.findIndex((line, index) => index > head && /^\s*-/.test(line));
  if (head < 0 || first < 0) return [];
  const indent = readLine(lines[first] ?? '')?.indent ?? 0;
  const isDash = (line: string): boolean => line.search(/\S/) === indent && /^\s*-/.test(line);
  const start = lines.findLastIndex((line, index) => index <= at && index >= first && isDash(line));
  if (start < 0) return [];
  const isEnd = (line: string): boolean => /^\S/.test(line) || isDash(line);
  const end = lines.findIndex((line, index) => index > start && isEnd(line));
  return lines.slice(start, end < 0 ? lines.length : end);
}

/** The one-line text of a step's key. */
export function valueIn(lines: readonly string[], key: string): string | null {
  const form = new RegExp(`^\\s*(?:-\\s+)?${key}:\\s*["']?([^"'#{}\\n]*?)["']?\\s*(?:#.*)?$`);
  for (const line of lines) {
    const value = form.exec(line)?.[1];
    if (value !== undefined && value !== '') return value;
  }
  return null;
}
