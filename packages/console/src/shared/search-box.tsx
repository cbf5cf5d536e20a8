import { type ReactElement, useEffect, useRef, useState } from 'react';
import { fieldClass } from './parts.tsx';

const pauseMs = 250;

export interface SearchBoxProps {
  /** Label for screen readers. */
  readonly label: string;
  readonly placeholder: string;
  /** The search text in the address. */
  readonly value: string | undefined;
  readonly onChange: (text: string | undefined) => void;
}

/** Searches during typing, after a pause. The key `/` focuses it. */
export function SearchBox({ label, placeholder, value, onChange }: SearchBoxProps): ReactElement {
  /** The typed text; null: the text in the address. */
  const [typed, setTyped] = useState<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (text: string): void => {
    clearTimeout(timer.current);
    const asked = text.trim() === '' ? undefined : text.trim();
    if (asked !== value) onChange(asked);
  };
  return (
    <input
      data-filter
      type="search"
      aria-label={label}
      placeholder={placeholder}
      className={`${fieldClass} w-56 max-w-full`}
      value={typed ?? value ?? ''}
      onChange={({ target }) => {
        setTyped(target.value);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => search(target.value), pauseMs);
      }}
      onKeyDown={({ key, currentTarget }) => key === 'Enter' && search(currentTarget.value)}
      onBlur={({ target }) => {
        if (typed !== null) search(target.value);
        setTyped(null);
      }}
    />
  );
}
