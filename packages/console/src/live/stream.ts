/**
 * One connection for all tabs, because a browser allows six to a server. The tab that holds the lock has the stream and
 * passes frames on; when it closes, another gets the lock. Each tab reports which runs it watches, and the stream is
 * reopened when that changes. Without locks (no secure context), each tab polls instead.
 */
import type { StreamFrame } from '@capstan/core/contracts/event';
import { openSource } from './event-source.ts';
import type { Contact } from './frame.ts';

type TabMessage =
  | { readonly kind: 'frames'; readonly frames: readonly StreamFrame[] }
  | { readonly kind: 'contact'; readonly contact: Contact }
  | { readonly kind: 'wants'; readonly tab: string; readonly runs: readonly string[] }
  | { readonly kind: 'who' };

export interface StreamListener {
  onFrames(frames: readonly StreamFrame[]): void;
  onContact(contact: Contact): void;
}

export interface LiveStream {
  /** @returns stops watching the run */
  want(runId: string): () => void;
  close(): void;
}

const gatherMs = 33;

/** The state of this tab, and its knowledge of the others. */
interface Hub {
  readonly tab: string;
  readonly project: string;
  readonly listener: StreamListener;
  readonly channel: BroadcastChannel;
  /** Runs that this tab watches, with their number of watchers. */
  readonly wanted: Map<string, number>;
  /** The runs of every tab. */
  readonly wishes: Map<string, readonly string[]>;
  /** Set while this tab has the stream. */
  follow: ((runs: readonly string[]) => void) | null;
}

function tell({ channel }: Hub, message: TabMessage): void {
  channel.postMessage(message);
}

function followWishes({ follow, wishes }: Hub): void {
  follow?.([...new Set([...wishes.values()].flat())].sort());
}

function tellWants(hub: Hub): void {
  const runs = [...hub.wanted.keys()];
  hub.wishes.set(hub.tab, runs);
  if (hub.follow === null) tell(hub, { kind: 'wants', tab: hub.tab, runs });
  else followWishes(hub);
}

function take(hub: Hub, message: TabMessage): void {
  switch (message.kind) {
    case 'frames':
      hub.listener.onFrames(message.frames);
      return;
    case 'contact':
      hub.listener.onContact(message.contact);
      return;
    case 'who':
      tellWants(hub);
      return;
    case 'wants':
      hub.wishes.set(message.tab, message.runs);
      followWishes(hub);
  }
}

/** Holds the stream until this tab closes. */
function lead(hub: Hub, closed: AbortSignal): Promise<void> {
  const source = openSource(hub.project, {
    onFrame: gather((frames) => {
      hub.listener.onFrames(frames);
      tell(hub, { kind: 'frames', frames });
    }),
    onContact: (contact) => {
      hub.listener.onContact(contact);
      tell(hub, { kind: 'contact', contact });
    },
  });
  hub.follow = source.follow;
  followWishes(hub);
  tell(hub, { kind: 'who' });
  return new Promise((resolve) => {
    closed.addEventListener('abort', () => {
      source.close();
      resolve();
    });
  });
}

/** Passes on gathered frames at most 30 times a second. */
function gather(send: (frames: readonly StreamFrame[]) => void): (frame: StreamFrame) => void {
  let frames: StreamFrame[] = [];
  const flush = (): void => {
    const gathered = frames;
    frames = [];
    send(gathered);
  };
  return (frame) => {
    frames.push(frame);
    if (frames.length === 1) setTimeout(flush, gatherMs);
  };
}

function changeWish(hub: Hub, runId: string, by: 1 | -1): void {
  const count = (hub.wanted.get(runId) ?? 0) + by;
  if (count > 0) hub.wanted.set(runId, count);
  else hub.wanted.delete(runId);
  tellWants(hub);
}

export function openStream(project: string, listener: StreamListener): LiveStream {
  if (navigator.locks === undefined) {
    listener.onContact({ kind: 'polling' });
    return { want: () => () => undefined, close: () => undefined };
  }
  const name = `capstan.live.${project}`;
  const channel = new BroadcastChannel(name);
  const tab = crypto.randomUUID();
  const hub: Hub = { tab, project, listener, channel, wanted: new Map(), wishes: new Map(), follow: null };
  const closed = new AbortController();
  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => take(hub, data);
  navigator.locks
    .request(name, { signal: closed.signal }, () => lead(hub, closed.signal))
    .catch(() => undefined);
  tellWants(hub);
  return {
    want: (runId) => {
      changeWish(hub, runId, 1);
      return () => closed.signal.aborted || changeWish(hub, runId, -1);
    },
    close: () => {
      tell(hub, { kind: 'wants', tab, runs: [] });
      closed.abort();
      channel.close();
    },
  };
}
