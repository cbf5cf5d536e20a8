import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { readSuggestedName, splitAllowed } from '@capstan/core/nearest-name';
import type { Action, Diagnostic } from '@codemirror/lint';
import type { Line, Text } from '@codemirror/state';

const severities = { error: 'error', warning: 'warning', note: 'info' } as const;

/** Columns of the word or value at a position. */
function wordAt(text: string, from: number): { readonly from: number; readonly to: number } {
  // Only the second part of a step reference is wrong.
  const lead = /^steps\./.exec(text.slice(from))?.[0].length ?? 0;
  const word = lead > 0 ? /^[\w-]+/ : /^[^\s:,}\]"']+/;
  const start = from + lead;
  return { from: start, to: start + Math.max(1, word.exec(text.slice(start))?.[0].length ?? 1) };
}

/** The edit that a suggested name makes. */
function fixesOf(suggestion: string | undefined): Action[] {
  const name = suggestion === undefined ? null : readSuggestedName(suggestion);
  if (name === null) return [];
  return [
    {
      name: `Use ${name}`,
      apply: (view, from, to) => view.dispatch({ changes: { from, to, insert: name } }),
    },
  ];
}

function toDiagnostic(at: Line, { severity, column = 1, message, suggestion }: Finding): Diagnostic {
  const word = wordAt(at.text, column - 1);
  const from = Math.min(at.to, at.from + word.from);
  const to = Math.max(from, Math.min(at.to, at.from + word.to));
  const [wrong] = splitAllowed(message);
  const said = suggestion === undefined ? wrong : `${suggestion} ${wrong}`;
  return { from, to, severity: severities[severity], message: said, actions: fixesOf(suggestion) };
}

/** Places each finding at its line and column, suggestion first; a suggested name is offered as an edit. */
export function toDiagnostics(text: Text, findings: readonly Finding[]): Diagnostic[] {
  return findings.map((finding) =>
    toDiagnostic(text.line(Math.min(Math.max(1, finding.line ?? 1), text.lines)), finding),
  );
}
