import type { ReactElement } from 'react';
import { toneFill } from '../shared/state.ts';
import { barLooks } from './bar-looks.ts';
import type { Bar } from './bars.ts';

type Entry = readonly [kind: Bar['kind'], word: string, look?: string];

const entries: readonly Entry[] = [
  ['waiting', 'waited'],
  ['retry', 'wait for a retry'],
  ['called', 'called'],
  ['called', 'failed', toneFill.failed],
  ['expected', 'expected'],
];

const stopped: Entry = ['cancelled', 'stopped before its end'];

const foldLook = 'border-x border-dotted border-line-strong bg-sunken';

const planEntries: readonly Entry[] = [
  ['planned', 'planned'],
  ['perhaps', 'planned (conditional)'],
];

export interface TimelineLegendProps {
  readonly hasPlan: boolean;
  /** Calls of a cancelled run, or of a race that others won. */
  readonly hasCancelled: boolean;
  /** Long times without a call are shortened. */
  readonly hasFolds: boolean;
}

export function TimelineLegend({ hasPlan, hasCancelled, hasFolds }: TimelineLegendProps): ReactElement {
  return (
    <span className="flex flex-wrap items-center gap-3 text-xs text-muted">
      {[...entries, ...(hasCancelled ? [stopped] : []), ...(hasPlan ? planEntries : [])].map(
        ([kind, word, look = barLooks[kind]]) => (
          <span key={word} className="flex items-center gap-1">
            <span className={`h-2.5 w-4 rounded-sm ${look}`} /> {word}
          </span>
        ),
      )}
      {hasFolds ? (
        <span className="flex items-center gap-1">
          <span className={`h-3.5 w-2 ${foldLook}`} /> time without a call, shortened
        </span>
      ) : null}
    </span>
  );
}
