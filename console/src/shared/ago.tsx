import type { ClipboardEvent, ReactElement } from 'react';
import { formatAgo, formatClock, formatExact } from './format.ts';
import { useNow } from './use-now.ts';

interface ShownTime {
  readonly at: string;
  /** How it reads; the exact time stands behind it. */
  readonly children: string;
}

/** What is copied out of a time is the time itself: `2026-11-25T14:03:27.123Z`. */
function copyExact(event: ClipboardEvent<HTMLTimeElement>): void {
  const selected = document.getSelection();
  if (selected === null || selected.rangeCount === 0) return;
  if (!event.currentTarget.contains(selected.getRangeAt(0).commonAncestorContainer)) return;
  event.clipboardData.setData('text/plain', event.currentTarget.dateTime);
  event.preventDefault();
}

/** A time with the exact one on hover. A click chooses it as a whole, and a copy of it is exact. */
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

/** How long ago. */
export function Ago({ at }: { readonly at: string }): ReactElement {
  return <ExactTime at={at}>{formatAgo(at, useNow())}</ExactTime>;
}

/** When: the time of day, with its date when it was not today. */
export function Moment({ at }: { readonly at: string }): ReactElement {
  return <ExactTime at={at}>{formatClock(at)}</ExactTime>;
}
