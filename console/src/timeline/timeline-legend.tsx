import type { ReactElement } from 'react';
import { barLooks } from './bar-looks.ts';
import type { Bar } from './bars.ts';

const entries: readonly (readonly [Bar['kind'], string])[] = [
  ['waiting', 'waited'],
  ['called', 'called'],
  ['expected', 'expected'],
];

const planEntries: typeof entries = [
  ['planned', 'planned'],
  ['perhaps', 'planned (conditional)'],
];

export function TimelineLegend({ hasPlan }: { readonly hasPlan: boolean }): ReactElement {
  return (
    <span className="flex flex-wrap items-center gap-3 text-xs text-muted">
      {[...entries, ...(hasPlan ? planEntries : [])].map(([kind, word]) => (
        <span key={kind} className="flex items-center gap-1">
          <span className={`h-2.5 w-4 rounded-sm ${barLooks[kind]}`} /> {word}
        </span>
      ))}
    </span>
  );
}
