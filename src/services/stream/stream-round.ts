/**
 * One round of the stream: what has happened from one horizon of transactions to the next, for all who watch. Each round
 * reads the events of the runs that somebody looks at; how things stand is read as often as a poll that is at rest
 * comes, however quick the rounds are, and what tells no transaction once in a second.
 */
import type { StreamFrame, StreamTopic } from '../../contracts/stream.ts';
import { longestPauseMs } from '../../core/poll-pause.ts';
import type { Db } from '../../db/connect.ts';
import { listNewEvents, readHorizon } from '../../db/run/event.ts';
import type { LogSpan } from '../../db/run/run-changes.ts';
import { compareInstances, type HeldCalls } from './instance-frames.ts';
import { createProjectFrames, isWanted } from './project-frames.ts';
import type { ReadRunFrames } from './run-frames.ts';
import { positionAt, type StreamPosition } from './stream-position.ts';

export type NewEvents = Awaited<ReturnType<typeof listNewEvents>>;

export interface StreamRound {
  readonly position: StreamPosition;
  /** Of the runs that somebody looks at. */
  readonly events: NewEvents;
  readonly instances: readonly StreamFrame[];
  readonly ofProject: ReadonlyMap<string, readonly StreamFrame[]>;
}

export interface StreamWatcher {
  readonly projectId: string;
  readonly topics: ReadonlySet<StreamTopic>;
  /** Whose every event is wanted. */
  readonly runIds: readonly string[];
  readonly take: (round: StreamRound) => void;
}

export interface RoundReader {
  /** Before the first round of a project: only what differs from now is told then. */
  prepare(projectId: string): Promise<void>;
  read(before: StreamPosition, watchers: readonly StreamWatcher[]): Promise<StreamRound>;
  /** Nobody watches any more. */
  forget(): void;
}

async function readEvents(
  db: Db,
  { from, to }: LogSpan,
  watchers: readonly StreamWatcher[],
): Promise<NewEvents> {
  const runIds = [...new Set(watchers.flatMap((watcher) => watcher.runIds))];
  return from === to || runIds.length === 0 ? [] : listNewEvents(db, runIds, from, to);
}

const slowMs = 1_000;
/** A timer may be early by so much. */
const slackMs = 5;

/** @returns true at most once in `everyMs` */
function createPace(everyMs: number, now: () => number): () => boolean {
  let lastAt = Number.NEGATIVE_INFINITY;
  return () => {
    const at = now();
    if (at - lastAt < everyMs - slackMs) return false;
    lastAt = at;
    return true;
  };
}

/** @param now milliseconds of a clock that is never set */
export function createRoundReader(db: Db, readRunFrames: ReadRunFrames, now: () => number): RoundReader {
  const projects = createProjectFrames(db, readRunFrames);
  const isStandingDue = createPace(longestPauseMs, now);
  const isSlowDue = createPace(slowMs, now);
  let held: HeldCalls = new Map();

  const readInstances = async (since: string): Promise<readonly StreamFrame[]> => {
    const compared = await compareInstances(db, since, held);
    held = compared.held;
    return compared.frames;
  };

  return {
    prepare: projects.prepare,
    read: async (before, watchers) => {
      const at = new Date();
      const to = await readHorizon(db);
      const events = await readEvents(db, { from: before.events, to }, watchers);
      if (!isStandingDue())
        return { position: { ...before, events: to }, events, instances: [], ofProject: new Map() };
      const span = { from: before.horizon, to, since: before.at, isSlow: isSlowDue() };
      const ofProject = new Map<string, readonly StreamFrame[]>();
      for (const projectId of new Set(watchers.map((watcher) => watcher.projectId))) {
        const own = watchers.filter((watcher) => watcher.projectId === projectId);
        ofProject.set(projectId, await projects.read(projectId, span, own));
      }
      const instances = isWanted(watchers, 'instances') ? await readInstances(span.from) : [];
      return { position: positionAt(to, at), events, instances, ofProject };
    },
    forget: () => {
      projects.forget();
      held = new Map();
    },
  };
}
