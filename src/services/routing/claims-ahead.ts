/**
 * Claims made ahead for short direct calls that come one after the other: who calls again within 50 ms is likely to call
 * once more, so some claims for calls like it are made while nobody waits for them, several by one statement, and the
 * next call waits for no database. They are claims like any other, durable where they hold money, and given back when no
 * call takes them within 50 ms. None is made where it could stand in somebody's way: on an instance that is half full,
 * of money that is short, or while several calls are under way, whose claims go together anyway.
 */

import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { CallTarget, Claimed } from './claim-instance.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';

export interface ClaimsAhead {
  /** Null for a call that somebody may ask for again. */
  enter(target: CallTarget): CallOfStream | null;
  /** Gives back what nobody has taken. */
  close(): void;
}

/** One call of a stream of calls that are alike. */
export interface CallOfStream {
  /** A claim that was made ahead, and whose instance takes the input; null: claim now. */
  take(): Promise<Claimed | null>;
  /** The call has ended. */
  leave(): void;
}

export interface ClaimsAheadDependencies {
  /** One claim for a call like this one, without waiting; null when there is none to be had, or none to spare. */
  readonly claim: (target: CallTarget) => Promise<Claimed | null>;
  readonly giveBack: (claimed: Claimed) => void;
  readonly fleet: Pick<FleetPoller, 'find'>;
  readonly validator: Pick<SchemaValidator, 'validateInput'>;
}

interface Stream {
  readonly ready: Claimed[];
  /** Claims under way. */
  making: number;
  /** Calls under way that came by here. */
  open: number;
  lastAt: number;
  /** Nothing was to be had: not before then. */
  pausedUntil: number;
}

const mostAhead = 4;
/** With as many left, more are made. */
const leastAhead = 2;
/** With more short calls than this under way, claims go together without being made ahead. */
const mostOpen = 4;
const mostStreams = 256;
const idleMs = 50;
const pauseMs = 250;

export function createClaimsAhead(dependencies: ClaimsAheadDependencies): ClaimsAhead {
  const { claim, giveBack } = dependencies;
  const streams = new Map<string, Stream>();
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;
  let openCalls = 0;

  const empty = ({ ready }: Stream): void => {
    for (const claimed of ready.splice(0)) giveBack(claimed);
  };

  const isIdle = ({ lastAt }: Stream): boolean => lastAt < performance.now() - idleMs;

  const sweep = (): void => {
    for (const [name, stream] of streams) {
      if (!isIdle(stream)) continue;
      empty(stream);
      if (stream.open === 0 && stream.making === 0) streams.delete(name);
    }
    timer = streams.size === 0 ? null : setTimeout(sweep, idleMs / 2).unref();
  };

  const find = (name: string): { stream: Stream; isNew: boolean } | null => {
    const known = streams.get(name);
    if (known !== undefined) return { stream: known, isNew: false };
    if (streams.size >= mostStreams) return null;
    const stream = { ready: [], making: 0, open: 0, lastAt: 0, pausedUntil: 0 };
    streams.set(name, stream);
    timer ??= setTimeout(sweep, idleMs).unref();
    return { stream, isNew: true };
  };

  const make = async (stream: Stream, target: CallTarget): Promise<void> => {
    stream.making += 1;
    const claimed = await claim(target).catch(() => null);
    stream.making -= 1;
    if (claimed === null) stream.pausedUntil = performance.now() + pauseMs;
    else if (isIdle(stream) || isClosed) giveBack(claimed);
    else stream.ready.push(claimed);
  };

  const refill = (stream: Stream, target: CallTarget): void => {
    const isWanted = stream.ready.length + stream.making <= leastAhead && openCalls < mostOpen;
    if (!isWanted || isClosed || performance.now() < stream.pausedUntil) return;
    while (stream.ready.length + stream.making < mostAhead) void make(stream, target);
  };

  return {
    enter: (target) => {
      if (!target.isKeyNew || target.step !== null || target.isAtMostOnce || openCalls >= mostOpen)
        return null;
      const name = `${target.projectId} ${JSON.stringify(target.route)}`;
      const found = find(name);
      if (found === null) return null;
      const { stream, isNew } = found;
      const enteredAt = performance.now();
      openCalls += 1;
      stream.open += 1;
      stream.lastAt = enteredAt;
      return {
        take: async () => {
          const claimed = stream.ready.shift() ?? null;
          if (claimed === null || (await isUsable(dependencies, claimed, target))) return claimed;
          giveBack(claimed);
          return null;
        },
        leave: () => {
          openCalls -= 1;
          stream.open -= 1;
          stream.lastAt = performance.now();
          const isShort = stream.lastAt - enteredAt < idleMs;
          if (isShort && !isNew) setImmediate(refill, stream, target); // the answer goes first
        },
      };
    },
    close: () => {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      for (const stream of streams.values()) empty(stream);
    },
  };
}

/** What was known when it was claimed may have changed since. */
async function isUsable(
  { fleet, validator }: Pick<ClaimsAheadDependencies, 'fleet' | 'validator'>,
  { instance }: Claimed,
  { input }: CallTarget,
): Promise<boolean> {
  const now = fleet.find(instance.instance_id);
  if (now === undefined || now.state !== 'up' || now.breaker_until_ms !== null) return false;
  const { name, version, spec_digest } = now;
  if (spec_digest === null || spec_digest !== instance.spec_digest) return false;
  return (await validator.validateInput(name, version, spec_digest, input)).ok;
}
