/** Compares two texts line by line, by the table of the longest common subsequence. */

export interface DiffLine {
  readonly kind: 'same' | 'gone' | 'new';
  readonly text: string;
}

const mostCells = 4_000_000;

function tableOf(before: readonly string[], after: readonly string[]): Uint32Array {
  const wide = after.length + 1;
  const table = new Uint32Array((before.length + 1) * wide);
  for (let row = before.length - 1; row >= 0; row--) {
    for (let column = after.length - 1; column >= 0; column--) {
      const at = row * wide + column;
      table[at] =
        before[row] === after[column]
          ? (table[at + wide + 1] ?? 0) + 1
          : Math.max(table[at + wide] ?? 0, table[at + 1] ?? 0);
    }
  }
  return table;
}

/** For texts that are too long, all lines are removed and added. */
export function diffLines(one: string, other: string): readonly DiffLine[] {
  const before = one.split('\n');
  const after = other.split('\n');
  const toLines = (texts: readonly string[], kind: DiffLine['kind']): DiffLine[] =>
    texts.map((text) => ({ kind, text }));
  if (before.length * after.length > mostCells) return [...toLines(before, 'gone'), ...toLines(after, 'new')];
  const table = tableOf(before, after);
  const wide = after.length + 1;
  const lines: DiffLine[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length && column < after.length) {
    const [old = '', fresh = ''] = [before[row], after[column]];
    const at = row * wide + column;
    if (old === fresh) {
      lines.push({ kind: 'same', text: old });
      row++;
      column++;
    } else if ((table[at + wide] ?? 0) >= (table[at + 1] ?? 0)) {
      lines.push({ kind: 'gone', text: old });
      row++;
    } else {
      lines.push({ kind: 'new', text: fresh });
      column++;
    }
  }
  return [...lines, ...toLines(before.slice(row), 'gone'), ...toLines(after.slice(column), 'new')];
}

export interface FoldedLine extends DiffLine {
  /** For a fold: the number of hidden unchanged lines. */
  readonly folded?: number;
}

const near = 3;

/** Only changes, with three lines around them. */
export function foldSame(lines: readonly DiffLine[]): readonly FoldedLine[] {
  const isShown = lines.map(() => false);
  for (const [index, { kind }] of lines.entries()) {
    if (kind === 'same') continue;
    for (let at = Math.max(0, index - near); at <= Math.min(lines.length - 1, index + near); at++)
      isShown[at] = true;
  }
  const folded: FoldedLine[] = [];
  let hidden = 0;
  const flush = (): void => {
    if (hidden > 0) folded.push({ kind: 'same', text: '', folded: hidden });
    hidden = 0;
  };
  for (const [index, line] of lines.entries()) {
    if (isShown[index] === true) {
      flush();
      folded.push(line);
    } else hidden++;
  }
  flush();
  return folded;
}
