import { useState } from 'react';

export interface OpenRows {
  readonly open: ReadonlySet<string>;
  /** Steps with every item visible, not only the slowest and the failed. */
  readonly all: ReadonlySet<string>;
  readonly toggle: (step: string) => void;
}

/** The expanded steps of a timeline: a toggle shows some of the items, then all, then none. */
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
