import { type ReactElement, useState } from 'react';
import { Icon } from './icon.tsx';

const shownMs = 1_500;

export function CopyButton({ text, name }: { readonly text: string; readonly name: string }): ReactElement {
  const [isDone, setDone] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), shownMs);
    });
  };
  return (
    <button
      type="button"
      onClick={copy}
      aria-label={isDone ? 'Copied' : `Copy ${name}`}
      className="grid size-6 place-items-center rounded text-muted hover:bg-sunken hover:text-text"
    >
      <Icon name={isDone ? 'check' : 'copy'} size={13} />
    </button>
  );
}
