import { type ReactElement, type ReactNode, useRef } from 'react';
import { Button } from './parts.tsx';

export interface FileButtonProps {
  /** Label for screen readers. */
  readonly label: string;
  readonly accept?: string;
  readonly onFile: (file: File) => void;
  readonly children: ReactNode;
}

/** Lets the user choose a local file; the same one may be chosen again. */
export function FileButton({ label, accept, onFile, children }: FileButtonProps): ReactElement {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon="upload" onClick={() => chooser.current?.click()}>
        {children}
      </Button>
      <input
        ref={chooser}
        type="file"
        accept={accept}
        aria-label={label}
        className="hidden"
        onChange={({ target }) => {
          const file = target.files?.[0];
          if (file !== undefined) onFile(file);
          target.value = '';
        }}
      />
    </>
  );
}
