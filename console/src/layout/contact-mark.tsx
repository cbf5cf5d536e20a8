import type { ReactElement } from 'react';
import { useLive } from '../live/live.tsx';
import { formatDuration } from '../shared/format.ts';
import { useNow } from '../shared/use-now.ts';

/** Whether the page is fresh; a lost stream with its age. */
export function ContactMark(): ReactElement | null {
  const { contact } = useLive();
  const now = useNow();
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
  const age = now - contact.since;
  if (age < 3_000) return null;
  return (
    <span
      role="status"
      className="inline-flex items-center gap-1.5 rounded-full bg-waiting-soft px-2 py-0.5 text-xs text-waiting"
    >
      <span className="size-1.5 rounded-full bg-waiting" />
      not live for {formatDuration(age)}
    </span>
  );
}
