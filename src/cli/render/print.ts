/**
 * Where a command's words go: results to stdout, remarks to stderr, so that a pipe gets results only.
 * Text from outside (capability errors, file names) may hold control characters; everything but colour is
 * taken out here, so nothing can move the cursor or retitle the window.
 */
import type { Shell, Terminal } from '../shell.ts';
import { createStyle, type Style, wantsColour } from './style.ts';
import { type Column, renderTable } from './table.ts';

export interface Printer {
  readonly style: Style;
  /** Columns of the terminal, Infinity without one. */
  readonly width: number;
  readonly line: (text?: string) => void;
  readonly lines: (texts: readonly string[]) => void;
  readonly table: (columns: readonly Column[], rows: readonly (readonly string[])[]) => void;
  /** An API answer as it came, ended by a newline. */
  readonly json: (text: string) => void;
  /** To stderr. */
  readonly remark: (text: string) => void;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it removes
const unsafe = /\u001b(?!\[[0-9;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

export function removeControls(text: string): string {
  return text.replace(unsafe, '');
}

function widthOf(output: Terminal): number {
  return output.isTTY === true ? (output.columns ?? 80) : Infinity;
}

export function createPrinter({ stdout, stderr, environment }: Shell): Printer {
  const style = createStyle(wantsColour(stdout, environment));
  const width = widthOf(stdout);
  const line = (text = ''): void => {
    stdout.write(`${removeControls(text)}\n`);
  };
  const lines = (texts: readonly string[]): void => texts.forEach(line);
  return {
    style,
    width,
    line,
    lines,
    table: (columns, rows) => lines(renderTable(columns, rows, { width, style })),
    json: (text) => {
      stdout.write(text.endsWith('\n') ? text : `${text}\n`);
    },
    remark: (text) => {
      stderr.write(`${removeControls(text)}\n`);
    },
  };
}
