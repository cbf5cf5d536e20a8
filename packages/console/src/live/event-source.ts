/** The EventSource of a project, reopened when other runs are watched; it continues after its last frame. */
import type { StreamFrame } from '@capstan/core/contracts/event';
import { frameKinds } from './frame.ts';

export interface SourceListener {
  onFrame(frame: StreamFrame): void;
  onOpen(): void;
  /** It tries again by itself. */
  onFail(): void;
}

export interface FrameSource {
  /** @param runs whose every event is wanted */
  follow(runs: readonly string[]): void;
  /** At once, also where the old one seems to be open. */
  reopen(): void;
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

interface SourceHandlers {
  readonly onFrame: (kind: StreamFrame['kind'], event: MessageEvent<string>) => void;
  readonly onOpen: () => void;
  readonly onError: (opened: EventSource) => void;
}

function connect(address: string, { onFrame, onOpen, onError }: SourceHandlers): EventSource {
  const opened = new EventSource(address);
  opened.onopen = onOpen;
  opened.onerror = () => onError(opened);
  for (const kind of frameKinds) {
    opened.addEventListener(kind, (event) => onFrame(kind, event as MessageEvent<string>));
  }
  return opened;
}

/** When the runs change; between two runs the list is empty for a moment, which opens nothing. */
function whenChanged(change: (runs: readonly string[]) => void): FrameSource['follow'] {
  let followed: string | null = null;
  let wished: readonly string[] = [];
  const follow = (): void => {
    if (wished.join() === followed) return;
    followed = wished.join();
    change(wished);
  };
  return (runs) => {
    wished = runs;
    queueMicrotask(follow);
  };
}

export function openSource(project: string, listener: SourceListener): FrameSource {
  let source: EventSource | null = null;
  let last = '';
  let isClosed = false;
  let followed: readonly string[] | null = null;
  let again: ReturnType<typeof setTimeout> | undefined;

  const open = (): void => {
    if (isClosed || followed === null) return;
    clearTimeout(again);
    source?.close();
    source = connect(toAddress(project, followed, last), {
      onFrame: (kind, event) => {
        last = event.lastEventId;
        listener.onFrame({ kind, data: kind === 'reset' ? null : JSON.parse(event.data) } as StreamFrame);
      },
      onOpen: listener.onOpen,
      onError: (opened) => {
        // The browser reconnects by itself unless it was refused.
        if (opened.readyState === EventSource.CLOSED) again = setTimeout(open, againMs);
        listener.onFail();
      },
    });
  };
  return {
    follow: whenChanged((runs) => {
      followed = runs;
      open();
    }),
    reopen: open,
    close: () => {
      isClosed = true;
      clearTimeout(again);
      source?.close();
    },
  };
}
