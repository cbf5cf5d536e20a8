/** The contact of a tab, from its machine: every event in every state, of a tab that leads and of one that follows. */
import {
  beginContact,
  type ContactEvent,
  type ContactFacts,
  contactOf,
  nextContact,
  type TabContact,
} from '../../../packages/console/src/live/contact-states.ts';
import { drawStates, outside } from './diagram.ts';
import { explore } from './explore.ts';

const since = 1;
const factsOfLeader: readonly ContactFacts[] = [
  { stream: 'open', server: 'answers', since: 0 },
  { stream: 'broken', server: 'answers', since: 0 },
  { stream: 'broken', server: 'silent', since },
];

const eventsOf: { readonly [Kind in ContactEvent['kind']]: readonly ContactEvent[] } = {
  led: [{ kind: 'led' }],
  deposed: [{ kind: 'deposed' }],
  opened: [{ kind: 'opened' }],
  failed: [{ kind: 'failed' }],
  answered: [{ kind: 'answered' }],
  unanswered: [{ kind: 'unanswered', at: since }],
  doubted: [{ kind: 'doubted' }],
  vouched: [{ kind: 'vouched' }],
  told: factsOfLeader.map((facts) => ({ kind: 'told', facts, isFresh: false })),
  asked: [{ kind: 'asked' }],
  ticked: [{ kind: 'ticked' }],
  woke: [{ kind: 'woke' }],
};

/** Of the stream, which only a leader has, and of the role, which only the other one can get. */
const onlyOf: Partial<Record<ContactEvent['kind'], TabContact['role']>> = {
  opened: 'leader',
  failed: 'leader',
  deposed: 'leader',
  led: 'follower',
};

export function drawContact(next: typeof nextContact = nextContact): string {
  const begin = beginContact(true);
  const arrows = explore<TabContact, ContactEvent, null>({
    starts: [begin],
    events: Object.values(eventsOf).flat(),
    isOver: () => false,
    next: (state, event) => {
      const isPossible = (onlyOf[event.kind] ?? state.role) === state.role;
      return { state: isPossible ? next(state, event).state : state, effect: null };
    },
  }).map(({ before, event, after }) => ({
    from: contactOf(before).kind,
    to: contactOf(after).kind,
    label: event.kind,
  }));
  return drawStates([{ from: outside, to: contactOf(begin).kind, label: '' }, ...arrows]);
}
