/**
 * Plain columns that fit the terminal: the widest shrinkable column gives way first, and identifiers (not
 * shrinkable) are never cut, because people copy them. Without a terminal nothing is cut at all.
 */
import { stripVTControlCharacters } from 'node:util';
import type { Style } from './style.ts';

export interface Column {
  readonly header: string;
  readonly align?: 'right';
  /** May be cut with `…` down to its header or 8 characters. */
  readonly shrinks?: boolean;
}

export interface TableLayout {
  /** Columns of the terminal, Infinity without one. */
  readonly width: number;
  readonly style: Style;
}

const gap = '  ';
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Cells that a text takes on the screen, colour codes not counted. */
export function measureText(text: string): number {
  let cells = 0;
  for (const character of stripVTControlCharacters(text)) {
    if (/\p{Mark}/u.test(character)) continue;
    cells += wide.test(character) ? 2 : 1;
  }
  return cells;
}

/** Cuts to `cells` with a `…` at the end. A coloured text that is too long loses its colour. */
export function cutText(text: string, cells: number): string {
  if (measureText(text) <= cells) return text;
  let kept = '';
  let used = 1;
  for (const character of stripVTControlCharacters(text)) {
    used += measureText(character);
    if (used > cells) break;
    kept += character;
  }
  return `${kept}…`;
}

function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' ');
}

function fitWidths(columns: readonly Column[], natural: readonly number[], width: number): number[] {
  const widths = [...natural];
  const least = columns.map(({ header, shrinks }, index) =>
    shrinks === true
      ? Math.min(natural[index] ?? 0, Math.max(8, measureText(header)))
      : (natural[index] ?? 0),
  );
  let excess = widths.reduce((sum, cells) => sum + cells, gap.length * (columns.length - 1)) - width;
  while (excess > 0) {
    const room = widths.map((cells, index) => (cells > (least[index] ?? 0) ? cells : 0));
    const widest = room.indexOf(Math.max(...room));
    if ((room[widest] ?? 0) === 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

function pad(text: string, cells: number, align: 'right' | undefined): string {
  const spaces = ' '.repeat(Math.max(0, cells - measureText(text)));
  return align === 'right' ? spaces + text : text + spaces;
}

/** Header line and one line per row. A column that is empty in every row is left out. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { width, style }: TableLayout,
): string[] {
  const kept = columns.map((_, index) => rows.some((row) => (row[index] ?? '') !== ''));
  const shown = columns.filter((_, index) => kept[index]);
  const cells = rows.map((row) => row.filter((_, index) => kept[index]).map(oneLine));
  const natural = shown.map(({ header }, index) =>
    cells.reduce((most, row) => Math.max(most, measureText(row[index] ?? '')), measureText(header)),
  );
  const widths = fitWidths(shown, natural, width);
  const renderRow = (texts: readonly string[]): string =>
    texts
      .map((text, index) => {
        const room = widths[index] ?? 0;
        return pad(cutText(text, room), room, shown[index]?.align);
      })
      .join(gap)
      .trimEnd();
  return [style.dim(renderRow(shown.map(({ header }) => header))), ...cells.map(renderRow)];
}
