/**
 * One connection for all tabs, because a browser allows six to a server. The tab that holds the lock has the stream and
 * passes frames on; when it closes, another gets the lock. Each tab reports which runs it watches, and the stream is
 * reopened when that changes. The machine in
 * `contact-states.ts` decides on the contact; this file carries out its actions. Without locks (no secure context), each tab polls instead.
 */
import type { StreamFrame } from '@capstan/core/contracts/event';
import { randomName } from '../api/client.ts';
import {
  beginContact,
  type ContactAction,
  type ContactEvent,
  type ContactFacts,
  contactOf,
  factsOf,
  nextContact,
  type TabContact,
} from './contact-states.ts';
import { type FrameSource, openSource } from './event-source.ts';
import type { Contact } from './frame.ts';
import { watchTab } from './watch-tab.ts';

type TabMessage =
  | { readonly kind: 'frames'; readonly frames: readonly StreamFrame[] }
  | { readonly kind: 'wants'; readonly tab: string; readonly runs: readonly string[] }
  | { readonly kind: 'who' }
  | { readonly kind: 'told'; readonly facts: ContactFacts; readonly isFresh: boolean }
  | { readonly kind: 'asked' | 'vouched' | 'doubted' };

export interface StreamListener {
  onFrames(frames: readonly StreamFrame[]): void;
  onContact(contact: Contact): void;
  /** Data may lack changes: before a stream was open, or while the tab slept. */
  onGap(): void;
  /** Wants a small request; `heard` receives its end. */
  onProbe(): void;
}

export interface LiveStream {
  /** @returns stops watching the run */
  want(runId: string): () => void;
  /** Whether the server answered a request of this tab. */
  heard(isAnswered: boolean): void;
  close(): void;
}

const gatherMs = 33;

/** The state of this tab, and its knowledge of the others. */
interface Hub {
  readonly tab: string;
  readonly project: string;
  readonly listener: StreamListener;
  /** Null without locks. */
  readonly channel: BroadcastChannel | null;
  /** Runs that this tab watches, with their number of watchers. */
  readonly wanted: Map<string, number>;
  /** The runs of every tab. */
  readonly wishes: Map<string, readonly string[]>;
  readonly closed: AbortSignal;
  contact: TabContact;
  /** Set while this tab has the stream. */
  source: FrameSource | null;
}

function nameOf(project: string): string {
  return `capstan.live.${project}`;
}

function tell({ channel, closed }: Hub, message: TabMessage): void {
  if (!closed.aborted) channel?.postMessage(message);
}

function followWishes({ source, wishes }: Hub): void {
  source?.follow([...new Set([...wishes.values()].flat())].sort());
}

function tellWants(hub: Hub): void {
  const runs = [...hub.wanted.keys()];
  hub.wishes.set(hub.tab, runs);
  if (hub.source === null) tell(hub, { kind: 'wants', tab: hub.tab, runs });
  else followWishes(hub);
}

/** The one way in which the contact of this tab changes. */
function apply(hub: Hub, event: ContactEvent): void {
  if (hub.closed.aborted) return;
  const { state, actions } = nextContact(hub.contact, event);
  hub.contact = state;
  hub.listener.onContact(contactOf(state));
  for (const action of actions) act(hub, action);
}

function act(hub: Hub, action: ContactAction): void {
  switch (action) {
    case 'ask':
      tell(hub, { kind: 'asked' });
      return;
    case 'tell':
    case 'tell_fresh':
      tell(hub, { kind: 'told', facts: factsOf(hub.contact), isFresh: action === 'tell_fresh' });
      return;
    case 'vouch':
      tell(hub, { kind: 'vouched' });
      return;
    case 'doubt':
      tell(hub, { kind: 'doubted' });
      return;
    case 'reopen':
      hub.source?.reopen();
      return;
    case 'take_over':
      requestLead(hub, { steal: true });
      return;
    case 'probe':
      hub.listener.onProbe();
      return;
    case 'read_again':
      hub.listener.onGap();
  }
}

function take(hub: Hub, message: TabMessage): void {
  switch (message.kind) {
    case 'frames':
      hub.listener.onFrames(message.frames);
      return;
    case 'who':
      tellWants(hub);
      return;
    case 'wants':
      hub.wishes.set(message.tab, message.runs);
      followWishes(hub);
      return;
    case 'told':
      apply(hub, message);
      return;
    case 'asked':
    case 'vouched':
    case 'doubted':
      apply(hub, { kind: message.kind });
  }
}

/** Waits for the lock, or takes it from a tab that does not answer. */
function requestLead(hub: Hub, how: { readonly steal: true } | { readonly signal: AbortSignal }): void {
  let isLeader = false;
  navigator.locks
    .request(nameOf(hub.project), how, () => {
      isLeader = true;
      return lead(hub);
    })
    .catch(() => {
      if (hub.closed.aborted || !isLeader) return;
      hub.source?.close();
      hub.source = null;
      apply(hub, { kind: 'deposed' });
      requestLead(hub, { signal: hub.closed });
    });
}

/** Holds the stream until this tab closes. */
function lead(hub: Hub): Promise<void> {
  if (hub.closed.aborted) return Promise.resolve();
  const source = openSource(hub.project, {
    onFrame: gather((frames) => {
      hub.listener.onFrames(frames);
      tell(hub, { kind: 'frames', frames });
    }),
    onOpen: () => apply(hub, { kind: 'opened' }),
    onFail: () => apply(hub, { kind: 'failed' }),
  });
  hub.source = source;
  apply(hub, { kind: 'led' });
  followWishes(hub);
  tell(hub, { kind: 'who' });
  return new Promise((resolve) => {
    hub.closed.addEventListener('abort', () => {
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

function join(hub: Hub): void {
  const { channel, closed } = hub;
  if (channel === null) return;
  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => take(hub, data);
  requestLead(hub, { signal: closed });
  tellWants(hub);
  tell(hub, { kind: 'asked' });
}

export function openStream(project: string, listener: StreamListener): LiveStream {
  const hasLocks = navigator.locks !== undefined;
  const channel = hasLocks ? new BroadcastChannel(nameOf(project)) : null;
  const tab = randomName();
  const closing = new AbortController();
  const hub: Hub = {
    tab,
    project,
    listener,
    channel,
    wanted: new Map(),
    wishes: new Map(),
    closed: closing.signal,
    contact: beginContact(hasLocks),
    source: null,
  };
  listener.onContact(contactOf(hub.contact));
  join(hub);
  const unwatch = watchTab((kind) => apply(hub, { kind }));
  return {
    want: (runId) => {
      changeWish(hub, runId, 1);
      return () => hub.closed.aborted || changeWish(hub, runId, -1);
    },
    heard: (isAnswered) =>
      apply(hub, isAnswered ? { kind: 'answered' } : { kind: 'unanswered', at: Date.now() }),
    close: () => {
      tell(hub, { kind: 'wants', tab, runs: [] });
      unwatch();
      closing.abort();
      channel?.close();
    },
  };
}
