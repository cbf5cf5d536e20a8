/**
 * One connection for all tabs, because a browser allows six to a server. The tab that holds the lock has the stream and
 * hands frames on; when it closes, another gets the lock. Each tab says which runs it looks at, and the stream is opened
 * anew when that changes. Where there are no locks (no secure context), each tab polls instead.
 */
import type { Contact, Frame } from './frame.ts';
import { openSource } from './source.ts';

type Message =
  | { readonly kind: 'frames'; readonly frames: readonly Frame[] }
  | { readonly kind: 'contact'; readonly contact: Contact }
  | { readonly kind: 'wants'; readonly tab: string; readonly runs: readonly string[] }
  | { readonly kind: 'who' };

export interface StreamListener {
  onFrames(frames: readonly Frame[]): void;
  onContact(contact: Contact): void;
}

export interface Stream {
  /** @returns ends the wish */
  want(runId: string): () => void;
  close(): void;
}

const gatherMs = 33;

export function openStream(project: string, listener: StreamListener): Stream {
  if (navigator.locks === undefined) {
    listener.onContact({ kind: 'polling' });
    return { want: () => () => undefined, close: () => undefined };
  }
  const tab = crypto.randomUUID();
  const channel = new BroadcastChannel(`capstan.live.${project}`);
  const closed = new AbortController();
  const wanted = new Map<string, number>();
  const wishes = new Map<string, readonly string[]>();
  let leader: { readonly update: () => void } | null = null;

  const tell = (message: Message): void => channel.postMessage(message);
  const ownRuns = (): string[] => [...wanted.keys()];
  const tellWants = (): void => {
    wishes.set(tab, ownRuns());
    if (leader === null) tell({ kind: 'wants', tab, runs: ownRuns() });
    else leader.update();
  };
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === 'frames') listener.onFrames(data.frames);
    else if (data.kind === 'contact') listener.onContact(data.contact);
    else if (data.kind === 'who') tellWants();
    else {
      wishes.set(data.tab, data.runs);
      leader?.update();
    }
  };

  const lead = (): Promise<void> => {
    const batch = createBatch((frames) => {
      listener.onFrames(frames);
      tell({ kind: 'frames', frames });
    });
    const source = openSource(project, {
      onFrame: batch.add,
      onContact: (contact) => {
        listener.onContact(contact);
        tell({ kind: 'contact', contact });
      },
    });
    leader = { update: () => source.follow([...new Set([...wishes.values()].flat())].sort()) };
    leader.update();
    tell({ kind: 'who' });
    return new Promise((resolve) => {
      closed.signal.addEventListener('abort', () => {
        source.close();
        resolve();
      });
    });
  };
  const { signal } = closed;
  navigator.locks.request(`capstan.live.${project}`, { signal }, lead).catch(() => undefined);
  tellWants();

  return {
    want: (runId) => {
      wanted.set(runId, (wanted.get(runId) ?? 0) + 1);
      tellWants();
      return () => {
        const count = (wanted.get(runId) ?? 1) - 1;
        if (count > 0) wanted.set(runId, count);
        else wanted.delete(runId);
        tellWants();
      };
    },
    close: () => {
      tell({ kind: 'wants', tab, runs: [] });
      closed.abort();
      channel.close();
    },
  };
}

interface Batch {
  readonly add: (frame: Frame) => void;
}

/** Hands on what came in at most 30 times a second. */
function createBatch(send: (frames: readonly Frame[]) => void): Batch {
  let frames: Frame[] = [];
  const flush = (): void => {
    const gathered = frames;
    frames = [];
    send(gathered);
  };
  return {
    add: (frame) => {
      frames.push(frame);
      if (frames.length === 1) setTimeout(flush, gatherMs);
    },
  };
}
