import type { Diagnostic } from '@codemirror/lint';
import type { Text } from '@codemirror/state';
import type { Finding } from '../../../src/contracts/pipeline.ts';

const severities = { error: 'error', warning: 'warning', note: 'info' } as const;

/** The word or value at a place. */
function endOf(line: string, from: number): number {
  const rest = line.slice(from);
  return from + Math.max(1, /^[^\s:,}\]]+/.exec(rest)?.[0].length ?? 1);
}

/** Each finding at its line and column; a suggestion is offered as the change that makes it. */
export function toDiagnostics(text: Text, findings: readonly Finding[]): Diagnostic[] {
  return findings.map(({ severity, line = 1, column = 1, message, suggestion }) => {
    const at = text.line(Math.min(Math.max(1, line), text.lines));
    const from = Math.min(at.to, at.from + column - 1);
    const to = Math.min(at.to, at.from + endOf(at.text, column - 1));
    const actions =
      suggestion === undefined
        ? []
        : [
            {
              name: `Use ${suggestion}`,
              apply: (view: { dispatch: (change: object) => void }, start: number, end: number) =>
                view.dispatch({ changes: { from: start, to: end, insert: suggestion } }),
            },
          ];
    return { from, to: Math.max(from, to), severity: severities[severity], message, actions };
  });
}
