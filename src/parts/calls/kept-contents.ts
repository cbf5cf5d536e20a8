/** Which projects keep the contents of their calls, as this process knows it, and what it holds of those in flight. */
import { keepsContents } from '../../db/access/project.ts';
import type { Db } from '../../db/connect.ts';
import { createRecentFacts } from '../recent-facts.ts';
import type { Claimed } from './routed-call.ts';

/** A call whose contents are kept. */
export interface HeldContent {
  /** The events of its stream so far, in the protocol of its client; null: there are none. */
  events: string | null;
}

export interface KeptContents {
  /** Whether contents of the project's calls are kept. It is read at most every 5 s, so a call rarely waits for it. */
  keeps(projectId: string): boolean | Promise<boolean>;
  /** The setting has changed. */
  forget(projectId: string): void;
  /** The contents of the call are kept. */
  hold(claimed: Claimed): HeldContent;
  /** Undefined: the contents of the call are not kept. */
  heldOf(claimed: Claimed): HeldContent | undefined;
}

export function createKeptContents(db: Db): KeptContents {
  const known = createRecentFacts((projectId) => keepsContents(db, projectId));
  const held = new WeakMap<Claimed, HeldContent>();
  return {
    keeps: (projectId) => {
      const keeps = known.of(projectId);
      return typeof keeps === 'boolean' ? keeps : keeps.catch(() => false);
    },
    forget: known.forget,
    hold: (claimed) => {
      const content: HeldContent = { events: null };
      held.set(claimed, content);
      return content;
    },
    heldOf: (claimed) => held.get(claimed),
  };
}

/** Longer streams are cut: so much is kept of an answer at most. */
const mostEvents = 131_072;

/** Adds a part of a stream in the protocol of its client. @param held null: it is not kept */
export function holdPart(held: HeldContent | null, part: unknown): void {
  if (held === null) return;
  if (typeof part !== 'object' || part === null || !('events' in part)) return;
  const { events } = part;
  if (typeof events !== 'string' || (held.events?.length ?? 0) >= mostEvents) return;
  held.events = (held.events ?? '') + events;
}
