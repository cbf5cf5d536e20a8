import type { ReactElement } from 'react';
import { EmptyState, fieldClass } from './parts.tsx';

export interface FilterFieldProps {
  /** Label for screen readers: "Filter skills". */
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** Filters the list of a page during typing. The key `/` focuses it. */
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

/** Replaces a list that the filter has emptied. */
export function NothingMatches({ text }: { readonly text: string }): ReactElement {
  return <EmptyState title="No matches">None of them contains “{text}”.</EmptyState>;
}
