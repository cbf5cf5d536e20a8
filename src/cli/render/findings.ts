/** Findings of validation, shown at their place: the line of the author's file with a caret below. */
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { ProblemItem } from '@capstan/core/contracts/problem';
import type { SourceFile } from '../input/arguments.ts';
import { type Colour, measureText, type Style } from './print.ts';

export interface FindingLayout {
  /** Columns of the terminal; Infinity without a terminal. */
  readonly width: number;
  readonly style: Style;
}

export const severityColours: Readonly<Record<Finding['severity'], Colour>> = {
  error: 'red',
  warning: 'yellow',
  note: 'blue',
};

/** The items of a refused definition, as findings. */
export function toFindings(items: readonly ProblemItem[]): Finding[] {
  return items.map((item) => ({ severity: 'error', ...item }));
}

/** The part of a long line around `column` that fits, and the column within it. */
function cutAround(line: string, column: number, room: number): { text: string; column: number } {
  if (line.length <= room) return { text: line, column };
  const kept = room - 2;
  const start = Math.max(0, Math.min(column - 1 - Math.floor(kept / 2), line.length - kept));
  const head = start > 0 ? '…' : '';
  const tail = start + kept < line.length ? '…' : '';
  return { text: head + line.slice(start, start + kept) + tail, column: column - start + head.length };
}

function renderExcerpt(
  source: string,
  { line, column }: { readonly line: number; readonly column: number | undefined },
  layout: FindingLayout,
): string[] {
  const { style, width } = layout;
  const original = source.split(/\r\n|\n|\r/)[line - 1];
  if (original === undefined || original.trim() === '') return [];
  const gutter = `${String(line).padStart(5)} | `;
  const shown = cutAround(original, column ?? 1, Math.max(20, width - gutter.length));
  const lines = [`${style.dim(gutter)}${shown.text}`];
  if (column === undefined) return lines;
  // Tabs are kept, so that the caret is aligned with any tab width.
  const before = shown.text.slice(0, shown.column - 1);
  const indent = before.replace(/[^\t]/gu, (character) => ' '.repeat(measureText(character)));
  return [...lines, `${style.dim('      | ')}${indent}${style.red('^')}`];
}

function renderFinding(finding: Finding, source: SourceFile, layout: FindingLayout): string[] {
  const { style } = layout;
  const { severity, code, line, column, pointer, message, suggestion } = finding;
  const place = [source.name, line, column].filter((part) => part !== undefined).join(':');
  const where = line === undefined && pointer !== '' ? ` (at ${pointer})` : '';
  const head = `${style.bold(place)} ${style[severityColours[severity]](severity)} ${code} ${message}${where}`;
  const excerpt = line === undefined ? [] : renderExcerpt(source.text, { line, column }, layout);
  return suggestion === undefined
    ? [head, ...excerpt]
    : [head, ...excerpt, `${style.dim('      = ')}${suggestion}`];
}

/** In the order of the file; findings without a position come first. */
export function renderFindings(
  findings: readonly Finding[],
  source: SourceFile,
  layout: FindingLayout,
): string[] {
  return findings
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
    .flatMap((finding) => renderFinding(finding, source, layout));
}

/** `2 errors, 1 warning`; empty for no findings. */
export function countFindings(findings: readonly Finding[]): string {
  const count = (severity: Finding['severity']): string[] => {
    const number = findings.filter((finding) => finding.severity === severity).length;
    return number === 0 ? [] : [`${number} ${severity}${number === 1 ? '' : 's'}`];
  };
  return [...count('error'), ...count('warning'), ...count('note')].join(', ');
}
