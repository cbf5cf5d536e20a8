import { useState } from 'react';

export interface OpenRows {
  readonly open: ReadonlySet<string>;
  /** Those of which every item is shown, not only the slowest and the failed. */
  readonly all: ReadonlySet<string>;
  readonly toggle: (step: string) => void;
}

/** Which steps of a timeline are unfolded: first to some of their items, then to all, then they are folded again. */
export function useOpenRows(): OpenRows {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState<ReadonlySet<string>>(new Set());
  const toggle = (id: string): void => {
    setAll(
      open.has(id) && !all.has(id) ? new Set([...all, id]) : new Set([...all].filter((one) => one !== id)),
    );
    if (!open.has(id)) setOpen(new Set([...open, id]));
    else if (all.has(id)) setOpen(new Set([...open].filter((one) => one !== id)));
  };
  return { open, all, toggle };
}
