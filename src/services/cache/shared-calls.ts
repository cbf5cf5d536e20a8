/**
 * Equal calls under way, which one caller makes and the others wait for: those of this process in memory, those of
 * other processes by one look at the database for all that wait.
 */
import type { Logger } from 'pino';
import { type CacheKey, listDecidedKeys } from '../../db/attempt/cached-result.ts';
import type { Db } from '../../db/connect.ts';

/** One lookup, or one call, for all of this process who want the same at the same time; the others wait in memory. */
export interface Flight<Result> {
  /** Null: it came to nothing. Rejects: whether there is a result could not be said. */
  readonly ended: Promise<Result | null>;
  /** Only the first one counts. */
  readonly end: (result: Result | null) => void;
  /** Instead of an end. */
  readonly fail: (error: unknown) => void;
}

export interface SharedFlights<Result> {
  /** The flight under way, or a new one of the caller's, which must end it. */
  join(name: string): { readonly flight: Flight<Result>; readonly isOwn: boolean };
}

function ignore(): void {}

export function createSharedFlights<Result>(): SharedFlights<Result> {
  const flights = new Map<string, Flight<Result>>();
  const open = (name: string): Flight<Result> => {
    let [resolve, reject]: [(result: Result | null) => void, (error: unknown) => void] = [ignore, ignore];
    const ended = new Promise<Result | null>((tell, refuse) => {
      [resolve, reject] = [tell, refuse];
    });
    ended.catch(ignore); // perhaps nobody waits for it
    const leave = (): void => {
      if (flights.get(name) === flight) flights.delete(name);
    };
    const end = (result: Result | null): void => {
      leave();
      resolve(result);
    };
    const fail = (error: unknown): void => {
      leave();
      reject(error);
    };
    const flight: Flight<Result> = { ended, end, fail };
    flights.set(name, flight);
    return flight;
  };
  return {
    join: (name) => {
      const known = flights.get(name);
      return known === undefined ? { flight: open(name), isOwn: true } : { flight: known, isOwn: false };
    },
  };
}

export interface LeaderWatch {
  /** Resolves when there is a result, or nobody makes the call any more, or the watch is closed. */
  decided(key: CacheKey): Promise<void>;
  close(): void;
}

const pauseMs = 100;

/** Calls that other processes make: one look for all that are waited for here, and none while nobody waits. */
export function createLeaderWatch({ db, logger }: { readonly db: Db; readonly logger: Logger }): LeaderWatch {
  const waiting = new Map<string, { readonly key: CacheKey; readonly tell: (() => void)[] }>();
  let timer: NodeJS.Timeout | null = null;
  let isClosed = false;
  const nameOf = ({ project_id, key }: CacheKey): string => `${project_id} ${key}`;

  const tell = (key: CacheKey): void => {
    const told = waiting.get(nameOf(key))?.tell ?? [];
    waiting.delete(nameOf(key));
    for (const one of told) one();
  };
  const look = async (): Promise<void> => {
    const keys = [...waiting.values()].map(({ key }) => key);
    try {
      for (const key of await listDecidedKeys(db, keys)) tell(key);
    } catch (error) {
      logger.warn({ err: error }, 'who waits for the result of another call waits on');
    }
    schedule();
  };
  const schedule = (): void => {
    timer = isClosed || waiting.size === 0 ? null : setTimeout(look, pauseMs).unref();
  };

  return {
    decided: (key) =>
      new Promise((resolve) => {
        if (isClosed) return resolve();
        const known = waiting.get(nameOf(key));
        if (known === undefined) waiting.set(nameOf(key), { key, tell: [resolve] });
        else known.tell.push(resolve);
        if (timer === null) schedule();
      }),
    close: () => {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      for (const { key } of [...waiting.values()]) tell(key);
    },
  };
}
