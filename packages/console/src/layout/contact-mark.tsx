import type { ReactElement } from 'react';
import { useLive, useServerAway } from '../live/live.tsx';
import { formatClock, formatDuration } from '../shared/format.ts';
import { useNow } from '../shared/use-now.ts';

/** Whether the page is fresh; `AwayBanner` reports a lost stream. */
export function ContactMark(): ReactElement | null {
  const { contact } = useLive();
  if (contact.kind === 'live') {
    return (
      <span
        className="hidden items-center gap-1.5 text-xs text-muted sm:inline-flex"
        title="Changes arrive as they happen"
      >
        <span className="size-1.5 rounded-full bg-done" />
        live
      </span>
    );
  }
  if (contact.kind === 'polling') {
    return <span className="hidden text-xs text-muted sm:inline">asks every 5 s</span>;
  }
  return null;
}

/** While the server is away, pages keep their data and the texts in their forms; the banner shows the time of the data. */
export function AwayBanner(): ReactElement | null {
  const since = useServerAway();
  const now = useNow();
  if (since === null) return null;
  return (
    <p role="status" className="mb-3 rounded-lg bg-waiting-soft px-3 py-2 text-sm text-waiting">
      The server has not answered since {formatClock(new Date(since).toISOString())} (
      {formatDuration(now - since)}). This page shows the state of that time; runs may have continued. Text
      that you have written stays here. Send it when the server answers again.
    </p>
  );
}
