/** The EventSource of a project, opened anew when other runs are looked at; it goes on after the last frame it had. */
import { type Contact, type Frame, frameKinds } from './frame.ts';

export interface SourceListener {
  onFrame(frame: Frame): void;
  onContact(contact: Contact): void;
}

export interface Source {
  /** @param runs whose every event is wanted */
  follow(runs: readonly string[]): void;
  close(): void;
}

const topics = 'runs,reviews,instances,budgets';
const againMs = 3_000;

function toAddress(project: string, runs: readonly string[], after: string): string {
  const query = new URLSearchParams({ topics });
  if (project !== '') query.set('project_id', project);
  for (const run of runs) query.append('run_id', run);
  if (after !== '') query.set('after', after);
  return `/v1/stream?${query}`;
}

export function openSource(project: string, listener: SourceListener): Source {
  let followed: string | null = null;
  let source: EventSource | null = null;
  let last = '';
  let lostSince: number | null = null;
  let again: ReturnType<typeof setTimeout> | undefined;

  const lose = (): void => {
    lostSince ??= Date.now();
    listener.onContact({ kind: 'lost', since: lostSince });
  };
  const take = (kind: Frame['kind'], event: MessageEvent<string>): void => {
    last = event.lastEventId;
    listener.onFrame({ kind, data: kind === 'reset' ? null : JSON.parse(event.data) } as Frame);
  };
  const open = (runs: readonly string[]): void => {
    clearTimeout(again);
    source?.close();
    const opened = new EventSource(toAddress(project, runs, last));
    source = opened;
    opened.onopen = () => {
      lostSince = null;
      listener.onContact({ kind: 'live' });
    };
    opened.onerror = () => {
      lose();
      // The browser comes again by itself unless it was refused.
      if (opened.readyState === EventSource.CLOSED) again = setTimeout(() => open(runs), againMs);
    };
    for (const kind of frameKinds) {
      opened.addEventListener(kind, (event) => take(kind, event as MessageEvent<string>));
    }
  };
  return {
    follow: (runs) => {
      const wish = runs.join();
      if (wish === followed) return;
      followed = wish;
      open(runs);
    },
    close: () => {
      clearTimeout(again);
      source?.close();
    },
  };
}
