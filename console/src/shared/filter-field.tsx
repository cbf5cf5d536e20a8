import type { ReactElement } from 'react';
import { EmptyState, fieldClass } from './parts.tsx';

export interface FilterFieldProps {
  /** What is filtered, for those who do not see the field: "Filter skills". */
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** Narrows the list of a page as it is typed in. The key `/` goes to it. */
export function FilterField({ label, value, onChange }: FilterFieldProps): ReactElement {
  return (
    <input
      data-filter
      aria-label={label}
      placeholder="Filter …"
      className={`${fieldClass} w-44`}
      value={value}
      onChange={({ target }) => onChange(target.value)}
    />
  );
}

/** In place of a list of which the filter has left nothing. */
export function NothingMatches({ text }: { readonly text: string }): ReactElement {
  return <EmptyState title="No matches">None of them contains “{text}”.</EmptyState>;
}
