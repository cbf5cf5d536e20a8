/**
 * The contact of one tab with the server, as a state machine without a clock and without I/O. All tabs of a project
 * share one stream: a leader holds it and sends the others its knowledge. It guarantees:
 *
 * K1 A tab reports that the server is away only after its own request went unanswered or its leader reported that.
 * K2 A request that any tab sees answered ends the report in all of them.
 * K3 A tab that receives nothing from its leader asks, and after `mostAsks` questions takes the stream over.
 * K4 After a sleep nothing is believed: a leader opens its stream again, a follower asks, and both read again.
 */
import type { Contact } from './frame.ts';

/** alone: without a lock that tabs share, each tab polls. */
export type TabRole = 'follower' | 'leader' | 'alone';

/** What is known of the stream that all tabs share. */
type StreamFact = 'unknown' | 'open' | 'broken';

/** What requests have shown since the stream was last open. */
type ServerFact = 'unknown' | 'answers' | 'silent';

/** The facts that a leader sends to its followers. */
export interface ContactFacts {
  readonly stream: StreamFact;
  readonly server: ServerFact;
  /** Since when it is silent, Unix time, ms; 0 while it is not. */
  readonly since: number;
}

export interface TabContact extends ContactFacts {
  readonly role: TabRole;
  /** Questions to the leader without an answer. */
  readonly asks: number;
}

export type ContactEvent =
  | { readonly kind: 'led' }
  /** Another tab took the stream over. */
  | { readonly kind: 'deposed' }
  /** The own stream opened, failed. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'failed' }
  /** A request of this tab was answered, whatever the status. */
  | { readonly kind: 'answered' }
  | { readonly kind: 'unanswered'; readonly at: number }
  /** Another tab, or the browser, has a reason to doubt the stream. */
  | { readonly kind: 'doubted' }
  /** Another tab saw an answer. */
  | { readonly kind: 'vouched' }
  /** @property isFresh the stream has been opened again, perhaps for runs that this tab watches */
  | { readonly kind: 'told'; readonly facts: ContactFacts; readonly isFresh: boolean }
  | { readonly kind: 'asked' }
  | { readonly kind: 'ticked' }
  /** The tab, or its computer, slept. */
  | { readonly kind: 'woke' };

export type ContactAction =
  | 'ask'
  | 'tell'
  /** Report that the stream has been opened again. */
  | 'tell_fresh'
  | 'vouch'
  | 'doubt'
  /** Open the own stream again. */
  | 'reopen'
  | 'take_over'
  /** Make a small request, whose end is an event. */
  | 'probe'
  /** Read again what frames may have changed. */
  | 'read_again';

export interface ContactStep {
  readonly state: TabContact;
  readonly actions: readonly ContactAction[];
}

export const mostAsks = 2;

const nothingKnown: ContactFacts = { stream: 'unknown', server: 'unknown', since: 0 };

export function beginContact(hasLocks: boolean): TabContact {
  return { role: hasLocks ? 'follower' : 'alone', asks: 0, ...nothingKnown };
}

export function contactOf({ role, stream, server, since }: TabContact): Contact {
  if (stream === 'open') return { kind: 'live' };
  if (server === 'silent') return { kind: 'lost', since };
  return role === 'alone' || server === 'answers' ? { kind: 'polling' } : { kind: 'connecting' };
}

/** The part that followers receive. */
export function factsOf({ stream, server, since }: TabContact): ContactFacts {
  return { stream, server, since };
}

/** What still counts when the stream may be another one: only that no request is answered. */
function doubted({ server, since }: TabContact): ContactFacts {
  return server === 'silent' ? { stream: 'unknown', server, since } : nothingKnown;
}

function to(
  state: TabContact,
  changed: Partial<TabContact>,
  actions: readonly ContactAction[] = [],
): ContactStep {
  return { state: { ...state, ...changed }, actions };
}

function afterAnswer(state: TabContact, isOwn: boolean): ContactStep {
  if (state.stream === 'open' || state.server === 'answers') return to(state, {});
  const answers = { server: 'answers', since: 0 } as const;
  if (state.role === 'alone') return to(state, answers, state.server === 'silent' ? ['read_again'] : []);
  if (state.role === 'leader') return to(state, answers, ['tell', ...whenBroken(state)]);
  return to(state, answers, isOwn ? ['vouch'] : []);
}

/** A stream that failed need not wait for its next try. */
function whenBroken({ stream }: TabContact): readonly ContactAction[] {
  return stream === 'broken' ? ['reopen'] : [];
}

function afterSilence(state: TabContact, at: number): ContactStep {
  // The stream may have ended without notice: its holder opens it again, and its failure is the evidence.
  if (state.stream === 'open') return to(state, {}, [state.role === 'leader' ? 'reopen' : 'doubt']);
  if (state.server === 'silent') return to(state, {});
  return to(state, { server: 'silent', since: at }, state.role === 'leader' ? ['tell'] : []);
}

function afterTold(state: TabContact, facts: ContactFacts, isFresh: boolean): ContactStep {
  if (state.role !== 'follower') return to(state, {});
  const isBack = facts.stream === 'open' && state.stream !== 'open';
  return to(state, { ...facts, asks: 0 }, isFresh || isBack ? ['read_again'] : []);
}

function afterTick(state: TabContact): ContactStep {
  if (state.role === 'leader') return to(state, {}, state.stream === 'open' ? [] : ['probe']);
  if (state.role === 'alone') return to(state, {});
  if (state.asks < mostAsks) return to(state, { asks: state.asks + 1 }, ['ask']);
  return to(state, { ...doubted(state), asks: 0 }, ['take_over']);
}

function afterSleep(state: TabContact): ContactStep {
  const again = { leader: 'reopen', follower: 'ask', alone: 'probe' } as const;
  return to(state, { ...doubted(state), asks: 0 }, [again[state.role], 'read_again']);
}

export function nextContact(state: TabContact, event: ContactEvent): ContactStep {
  const isLeader = state.role === 'leader';
  switch (event.kind) {
    case 'led':
      return to(state, { role: 'leader', stream: 'unknown', asks: 0 }, ['tell']);
    case 'deposed':
      return to(state, { role: 'follower', stream: 'unknown', asks: 0 }, ['ask']);
    case 'opened':
      return to(state, { stream: 'open', server: 'answers', since: 0 }, ['tell_fresh', 'read_again']);
    case 'failed':
      // Requests from before the failure prove nothing about the time after it.
      return state.stream === 'broken'
        ? to(state, {}, ['probe'])
        : to(state, { stream: 'broken', server: state.server === 'silent' ? 'silent' : 'unknown' }, [
            'tell',
            'probe',
          ]);
    case 'answered':
      return afterAnswer(state, true);
    case 'vouched':
      return afterAnswer(state, false);
    case 'unanswered':
      return afterSilence(state, event.at);
    case 'doubted':
      return to(state, {}, isLeader && state.stream === 'open' ? ['reopen'] : []);
    case 'told':
      return afterTold(state, event.facts, event.isFresh);
    case 'asked':
      return to(state, {}, isLeader ? ['tell'] : []);
    case 'ticked':
      return afterTick(state);
    case 'woke':
      return afterSleep(state);
  }
}
