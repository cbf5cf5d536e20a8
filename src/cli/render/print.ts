/**
 * The output of a command: results to stdout, remarks to stderr, so that a pipe gets results only. Text from outside
 * (capability errors, file names) may hold control characters. They are removed here, except colours, so that no text
 * can move the cursor, change the window's title, turn the direction of others, or begin a line that looks like ours.
 */

import { stripVTControlCharacters } from 'node:util';
import type { Shell, Terminal } from '../shell.ts';

// Colour by SGR codes, or none at all.

type Paint = (text: string) => string;
export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan';
export type Style = Readonly<Record<Colour, Paint>>;

const codes: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
};

/** NO_COLOR (any value) overrides everything; a pipe or a dumb terminal gets no colour. */
export function wantsColour(output: Terminal, environment: NodeJS.ProcessEnv): boolean {
  if (environment.NO_COLOR !== undefined && environment.NO_COLOR !== '') return false;
  if (environment.FORCE_COLOR !== undefined && environment.FORCE_COLOR !== '0') return true;
  return output.isTTY === true && environment.TERM !== 'dumb';
}

export function createStyle(coloured: boolean): Style {
  const paint =
    ([on, off]: readonly [number, number]): Paint =>
    (text) =>
      coloured && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  return {
    bold: paint(codes.bold),
    dim: paint(codes.dim),
    red: paint(codes.red),
    green: paint(codes.green),
    yellow: paint(codes.yellow),
    blue: paint(codes.blue),
    cyan: paint(codes.cyan),
  };
}

// Plain columns that fit the terminal: the widest shrinkable column is cut first. Identifiers are never cut, because
// people copy them. Without a terminal, nothing is cut.

export interface Column {
  readonly header: string;
  readonly align?: 'right';
  /** May be cut with `…` down to its header or 8 characters. */
  readonly shrinks?: boolean;
}

export interface TableLayout {
  /** Columns of the terminal; Infinity without a terminal. */
  readonly width: number;
  readonly style: Style;
}

const gap = '  ';
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Width of a text in terminal cells, without colour codes. */
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
  return text.replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' ');
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

/** The name of a field, or a function that returns its text; empty for null. */
type Cell<Row, Layout> = (keyof Row & string) | ((row: Row, layout: Layout) => string);

interface Look extends TableLayout {
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** One entry per column: its header, its cell, and its layout. */
export type Columns<Row, Layout extends TableLayout = Look> = readonly (readonly [
  header: string,
  cell: Cell<Row, Layout>,
  ...set: readonly ('right' | 'shrinks')[],
])[];

/** One line per row under the headers, as `renderTable` sets them. */
export function renderRows<Row, Layout extends TableLayout>(
  table: Columns<Row, Layout>,
  rows: readonly Row[],
  layout: Layout,
): string[] {
  const columns = table.map(
    ([header, , ...set]): Column => ({
      header,
      align: set.includes('right') ? 'right' : undefined,
      shrinks: set.includes('shrinks'),
    }),
  );
  const toText = (row: Row, cell: Cell<Row, Layout>): string =>
    typeof cell === 'string' ? String(row[cell] ?? '') : cell(row, layout);
  const cells = rows.map((row) => table.map(([, cell]) => toText(row, cell)));
  return renderTable(columns, cells, layout);
}

export interface Printer {
  readonly style: Style;
  /** Columns of the terminal; Infinity without a terminal. */
  readonly width: number;
  readonly line: (text?: string) => void;
  readonly lines: (texts: readonly string[]) => void;
  readonly table: <Row>(table: Columns<Row>, rows: readonly Row[]) => void;
  /** An API answer as received, with a newline at the end; on a terminal, without what that would obey. */
  readonly json: (text: string) => void;
  /** To stderr. */
  readonly remark: (text: string) => void;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
const unsafe = /\u001b(?!\[[0-9;]*m)|(?![\t\n\u001b])\p{Cc}|\p{Bidi_Control}/gu;

/** A text as one line of a terminal. */
export function toLine(text: string): string {
  return oneLine(text).replace(unsafe, '');
}

/** The same JSON: such characters are only in its strings. */
function escapeInJson(text: string): string {
  return text.replace(
    /(?![\r\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function widthOf(output: Terminal): number {
  return output.isTTY === true ? (output.columns ?? 80) : Infinity;
}

export function createPrinter({ stdout, stderr, environment, now: clock }: Shell): Printer {
  const style = createStyle(wantsColour(stdout, environment));
  const width = widthOf(stdout);
  const line = (text = ''): void => {
    stdout.write(`${toLine(text)}\n`);
  };
  const lines = (texts: readonly string[]): void => texts.forEach(line);
  return {
    style,
    width,
    line,
    lines,
    table: (table, rows) => lines(renderRows(table, rows, { width, style, now: clock() })),
    json: (text) => {
      const shown = stdout.isTTY === true ? escapeInJson(text) : text;
      stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
    },
    remark: (text) => {
      stderr.write(`${toLine(text)}\n`);
    },
  };
}
