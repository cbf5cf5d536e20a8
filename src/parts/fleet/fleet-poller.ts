/**
 * The router's view of all instances, in memory: polled, and corrected at once by this process's claims and releases.
 * It may be a poll old; the database checks every claim again, so it need not be exact. It wakes the calls that wait
 * for a slot of a capability, and knows which capabilities exist (requireCapability).
 */

import type { CancelSignal } from '@capstan/core/cancellation';
import { AppError } from '@capstan/core/errors/app-error';
import { isRoutable } from '@capstan/core/fleet/instance-states';
import { createNameSuggester } from '@capstan/core/nearest-name';
import { freeSlots } from '@capstan/core/routing/estimate';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import {
  isCapabilityName,
  listCapabilityNames,
  type NameInProject,
} from '../../db/instance/capability-name.ts';
import { pollInstances } from '../../db/instance/instance-list.ts';
import { newToken } from '../ids.ts';
import { createFleetView, type FleetView, type ProjectFleet } from './fleet-view.ts';
import { createSlotWaiters, type SlotWaiters, type SlotWish } from './slot-waiters.ts';

/** Repeats a poll with a pause between, never two in parallel, and lets callers wait for one that begins later. */
interface PollLoop {
  /** Resolves after the first poll, even when it failed. */
  start(): Promise<void>;
  /** Resolves when no poll is in flight. */
  close(): Promise<void>;
  /** Resolves after a poll that began after this call. @throws what the poll throws */
  refresh(): Promise<void>;
}

interface PollLoopOptions {
  readonly poll: () => Promise<void>;
  readonly intervalMs: number;
  readonly logger: Logger;
}

/** Polls never overlap: a refresh during one waits for the next. */
function createSinglePoll(poll: () => Promise<void>) {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  const begin = (): Promise<void> => {
    running = poll().finally(() => {
      running = null;
    });
    return running;
  };

  const refresh = (): Promise<void> => {
    if (running === null) return begin();
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return begin();
      });
    return next;
  };

  return {
    refresh,
    settled: async () => {
      await (next ?? running)?.catch(() => undefined);
    },
  };
}

function createPollLoop({ poll, intervalMs, logger }: PollLoopOptions): PollLoop {
  const { refresh, settled } = createSinglePoll(poll);
  let timer: NodeJS.Timeout | null = null;
  let isStarted = false;

  const repeat = async (): Promise<void> => {
    await refresh().catch((error: unknown) =>
      logger.warn({ err: error }, 'instances could not be polled; routing uses the last known state'),
    );
    if (isStarted) timer = setTimeout(repeat, intervalMs).unref();
  };

  return {
    refresh,
    start: () => {
      isStarted = true;
      return repeat();
    },
    close: async () => {
      isStarted = false;
      if (timer !== null) clearTimeout(timer);
      await settled();
    },
  };
}

export interface FleetPoller {
  /** This process, as its leases of slots name it. */
  readonly holder: string;
  /** Reads all instances, then keeps polling. Resolves after the first poll, also when it failed. */
  start(): Promise<void>;
  close(): Promise<void>;
  /** Resolves after a poll that began after this call. @throws what the database throws */
  refresh(): Promise<void>;
  /** The fleet of a project; null: of one that has no instance of its own. */
  seenBy(projectId: string | null): ProjectFleet;
  /** The projects that have instances of a capability which do not serve all. */
  ownersOf(capability: string): readonly string[];
  /** All instances of a capability, of any project. */
  all(capability: string): readonly InstanceSnapshot[];
  find(instanceId: string): InstanceSnapshot | undefined;
  /** The database's clock, as far as it is known. */
  nowMs(): number;
  /** A call with the key begins on an instance. @returns whether its list has changed */
  noteServed(instanceId: string, key: string): boolean;
  /** A call with the key has failed where it was not loaded before. */
  noteUnloaded(instanceId: string, key: string): void;
  /**
   * Counts a call more on an instance, until a later poll has counted it. @returns reverts it when the claim is refused
   */
  noteClaim(instanceId: string): () => void;
  /** Counts calls that have ended and whose end is written with the next claim. */
  noteLeaving(instanceId: string, by: 1 | -1): void;
  /** Counts calls on leased slots of this process, which polls leave out. */
  noteLeased(instanceId: string, by: 1 | -1): void;
  /** Whether another router waits for a slot that this process has leased; true once for each poll. */
  takeSlotRequest(instanceId: string): boolean;
  /** Whether any call of a step waits in a line. */
  hasLines(): boolean;
  /** The free slots of capabilities for which calls wait in lines. */
  roomInLines(): number;
  /** Calls of steps that wait in a line for a slot, with this rank or a better one (1 is the best). */
  inLine(line: string, rank: number): number;
  /** Counts a call more in a line, until the next poll. */
  noteInLine(line: string, rank: number): void;
  /** How long ago the last poll began. */
  ageMs(): number;
  /** Counts a call less. */
  noteRelease(instanceId: string): void;
  /** True when there may be room on an instance of the capability; false when the time is over or `signal` aborts. */
  waitForRelease(wish: SlotWish, timeoutMs: number, signal: CancelSignal): Promise<boolean>;
}

interface FleetPollerOptions {
  readonly db: Db;
  readonly intervalMs?: number;
  readonly logger: Logger;
}

function hasRoom(instance: InstanceSnapshot): boolean {
  return isRoutable(instance.state) && freeSlots(instance, instance.held) > 0;
}

/** Also wakes for slots that were free before: a slot that was used and released between two polls looks the same. */
function wakeWhereRoomIs(view: FleetView, waiters: SlotWaiters): void {
  for (const capability of [...waiters.awaited()]) {
    if (view.all(capability).some(hasRoom)) waiters.wake(capability);
  }
}

function wakeSharers(view: FleetView, waiters: SlotWaiters, instanceId: string): void {
  const instance = view.find(instanceId);
  for (const name of view.sharers(instanceId)) {
    waiters.wake(name, name === instance?.name ? instance : undefined);
  }
}

function readingsOf(view: FleetView) {
  const { seenBy, ownersOf, all, find, nowMs, noteClaim, noteServed, noteUnloaded, ...lines } = view;
  const { takeSlotRequest, hasLines, roomInLines, inLine, noteInLine, ageMs } = lines;
  return {
    seenBy,
    ownersOf,
    all,
    find,
    nowMs,
    noteClaim,
    noteServed,
    noteUnloaded,
    takeSlotRequest,
    hasLines,
    roomInLines,
    inLine,
    noteInLine,
    ageMs,
  };
}

export function createFleetPoller({ db, intervalMs = 250, logger }: FleetPollerOptions): FleetPoller {
  const holder = newToken();
  const view = createFleetView();
  const waiters = createSlotWaiters();

  const wakeFor = (instanceId: string): void => wakeSharers(view, waiters, instanceId);

  const poll = async (): Promise<void> => {
    const since = view.beginPoll();
    try {
      view.acceptPoll(await pollInstances(db, since, holder));
      wakeWhereRoomIs(view, waiters);
    } catch (error) {
      view.dropPoll();
      throw error;
    }
  };

  return {
    ...createPollLoop({ poll, intervalMs, logger }),
    ...readingsOf(view),
    holder,
    noteLeased: (instanceId, by) => {
      view.noteLeased(instanceId, by);
      if (by === -1) wakeFor(instanceId);
    },
    noteLeaving: (instanceId, by) => {
      view.noteLeaving(instanceId, by);
      if (by === 1) wakeFor(instanceId);
    },
    noteRelease: (instanceId) => {
      view.note(instanceId, -1);
      wakeFor(instanceId);
    },
    waitForRelease: waiters.wait,
  };
}

export interface CapabilityLookup {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'seenBy'>;
}

/**
 * Queries the database only about names without a live instance that serves the project.
 * @param pointer where the request names it
 * @throws AppError `not_found` for a name that never had one, with the nearest of the names that the project sees
 */
export function requireCapability(
  { db, fleet }: CapabilityLookup,
  wanted: NameInProject,
  pointer: string,
): Promise<void> | undefined {
  const { instances } = fleet.seenBy(wanted.projectId).of(wanted.name);
  return instances.length > 0 ? undefined : requireRegistered(db, wanted, pointer);
}

async function requireRegistered(db: Db, wanted: NameInProject, pointer: string): Promise<void> {
  const { projectId, name } = wanted;
  if (await isCapabilityName(db, wanted)) return;
  const suggestion = createNameSuggester(await listCapabilityNames(db, projectId))(name);
  const message = `no instance ever registered the capability ${name}`;
  throw new AppError('not_found', suggestion === undefined ? message : `${message}; ${suggestion}`, {
    errors: [{ pointer, code: 'capability_unknown', message, ...(suggestion && { suggestion }) }],
  });
}
