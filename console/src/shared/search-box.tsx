import { type ReactElement, useEffect, useRef, useState } from 'react';
import { fieldClass } from './parts.tsx';

const pauseMs = 250;

export interface SearchBoxProps {
  /** What is searched, for those who do not see the field. */
  readonly label: string;
  readonly placeholder: string;
  /** What the address says. */
  readonly value: string | undefined;
  readonly onChange: (text: string | undefined) => void;
}

/** Searches while it is typed in, once the fingers pause. The key `/` goes to it. */
export function SearchBox({ label, placeholder, value, onChange }: SearchBoxProps): ReactElement {
  /** What is being typed; null: what the address says. */
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
