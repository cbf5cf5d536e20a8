/**
 * Reads one round of the stream for all watchers, from one horizon of transactions to the next. Each round reads the
 * events of the watched runs. States are read at the idle rate, however fast the rounds are; states without a
 * transaction id once a second.
 */
import type { StreamFrame } from '@capstan/core/contracts/event';
import { longestPauseMs } from '@capstan/core/pacing';
import type { Db } from '../../db/connect.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import { listNewEvents, readHorizon } from '../../db/run/event.ts';
import type { LogSpan } from '../../db/run/run-list.ts';
import {
  type NewEvents,
  positionAt,
  type RoundReader,
  type StreamWatcher,
} from '../../parts/feeds/stream-feed.ts';
import { compareInstances, createProjectFrames, type FrameCtx, type HeldCalls, isWanted } from './frames.ts';

async function readEvents(db: Db, span: LogSpan, watchers: readonly StreamWatcher[]): Promise<NewEvents> {
  const runIds = [...new Set(watchers.flatMap((watcher) => watcher.runIds))];
  return span.from === span.to || runIds.length === 0 ? [] : listNewEvents(db, runIds, span);
}

const slowMs = 1_000;

/** A timer may be early by this much. */
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

/** @param now milliseconds of a monotonic clock */
export function createRoundReader(ctx: FrameCtx, now: () => number): RoundReader {
  const { db } = ctx;
  const projects = createProjectFrames(ctx);
  const isStandingDue = createPace(longestPauseMs, now);
  const isSlowDue = createPace(slowMs, now);
  let held: HeldCalls = new Map();

  const readInstances = async (since: string): Promise<readonly InstanceRow[]> => {
    const compared = await compareInstances(db, since, held);
    held = compared.held;
    return compared.rows;
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
