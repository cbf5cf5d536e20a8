import type { ClipboardEvent, ReactElement } from 'react';
import { formatAgo, formatClock, formatExact } from './format.ts';
import { useNow } from './use-now.ts';

interface ShownTime {
  readonly at: string;
  /** The short form; the exact time is in the tooltip. */
  readonly children: string;
}

/** Copying a time copies its exact form: `2026-11-25T14:03:27.123Z`. */
function copyExact(event: ClipboardEvent<HTMLTimeElement>): void {
  const selected = document.getSelection();
  if (selected === null || selected.rangeCount === 0) return;
  if (!event.currentTarget.contains(selected.getRangeAt(0).commonAncestorContainer)) return;
  event.clipboardData.setData('text/plain', event.currentTarget.dateTime);
  event.preventDefault();
}

/** A time with the exact one in the tooltip. A click selects all of it, and a copy is exact. */
function ExactTime({ at, children }: ShownTime): ReactElement {
  return (
    <time
      dateTime={at}
      title={formatExact(at)}
      onCopy={copyExact}
      className="figure select-all whitespace-nowrap"
    >
      {children}
    </time>
  );
}

/** The age of a time. */
export function Ago({ at }: { readonly at: string }): ReactElement {
  return <ExactTime at={at}>{formatAgo(at, useNow())}</ExactTime>;
}

/** The time of day, with the date when it is not today. */
export function Moment({ at }: { readonly at: string }): ReactElement {
  return <ExactTime at={at}>{formatClock(at)}</ExactTime>;
}
