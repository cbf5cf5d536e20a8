/**
 * The router's picture of all instances, in memory: polled, and corrected at once by what this process claims and
 * releases. It may be a poll old; the database checks every claim again, so it only has to be good, not exact.
 */
import type { Logger } from 'pino';
import type { Fleet } from '../../../core/call/claim-search.ts';
import type { CancelSignal } from '../../../core/cancellation.ts';
import type { InstanceSnapshot } from '../../../core/routing/types.ts';
import type { Db } from '../../../db/connect.ts';
import { pollInstances } from '../../../db/instance/instance-changes.ts';
import { createPollLoop } from '../../delivery/poll-loop.ts';
import { createFleetView } from './fleet-view.ts';
import { createSlotWaiters } from './slot-waiters.ts';

export interface FleetPoller {
  /** Reads all instances, then goes on polling. Resolves after the first poll, also when it failed. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves after a poll that began after this call. @throws what the database throws */
  refresh(): Promise<void>;
  of(capability: string): Fleet;
  find(instanceId: string): InstanceSnapshot | undefined;
  /** The database's clock, as far as it is known. */
  nowMs(): number;
  /** One call more on an instance, until a poll that begins later has counted it. @returns takes it back when it is refused */
  noteClaim(instanceId: string): () => void;
  /** Calls more or less that have ended and whose end goes with the next claim. */
  noteLeaving(instanceId: string, by: 1 | -1): void;
  /** One call less. */
  noteRelease(instanceId: string): void;
  /** True when there may be room on an instance of the capability; false when the time is over or `signal` aborts. */
  waitForRelease(capability: string, timeoutMs: number, signal: CancelSignal): Promise<boolean>;
}

export interface FleetPollerOptions {
  readonly db: Db;
  readonly intervalMs?: number;
  readonly logger: Logger;
}

function hasRoom({ state, max_concurrency, held }: InstanceSnapshot): boolean {
  return (state === 'up' || state === 'suspect') && held < max_concurrency;
}

export function createFleetPoller({ db, intervalMs = 250, logger }: FleetPollerOptions): FleetPoller {
  const picture = createFleetView();
  const bell = createSlotWaiters();

  /** Also for slots that were free before: one that was taken and released between two polls looks like those. */
  const ringWhereRoomIs = (): void => {
    for (const capability of [...bell.awaited()]) {
      if (picture.of(capability).instances.some(hasRoom)) bell.wake(capability);
    }
  };

  const ringFor = (instanceId: string): void => {
    const instance = picture.find(instanceId);
    if (instance !== undefined) bell.wake(instance.name);
  };

  const poll = async (): Promise<void> => {
    const since = picture.beginPoll();
    try {
      const answer = await pollInstances(db, since);
      picture.acceptPoll(answer);
      ringWhereRoomIs();
    } catch (error) {
      picture.dropPoll();
      throw error;
    }
  };

  const onError = (error: unknown): void =>
    logger.warn({ err: error }, 'instances could not be polled; routing goes on with what is known');

  return {
    ...createPollLoop({ poll, intervalMs, onError }),
    of: picture.of,
    find: picture.find,
    nowMs: picture.nowMs,
    noteClaim: picture.noteClaim,
    noteLeaving: (instanceId, by) => {
      picture.noteLeaving(instanceId, by);
      if (by === 1) ringFor(instanceId);
    },
    noteRelease: (instanceId) => {
      picture.note(instanceId, -1);
      ringFor(instanceId);
    },
    waitForRelease: bell.wait,
  };
}
