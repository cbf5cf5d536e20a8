/** Calls that other processes make: one look for all that are waited for here, and none while nobody waits. */
import type { Logger } from 'pino';
import { type CacheKey, listDecidedKeys } from '../../db/cache/cached-result.ts';
import type { Db } from '../../db/connect.ts';

export interface LeaderWatch {
  /** Resolves when there is a result, or nobody makes the call any more, or the watch is closed. */
  decided(key: CacheKey): Promise<void>;
  close(): void;
}

const pauseMs = 100;

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
