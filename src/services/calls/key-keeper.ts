/** Renews the Idempotency-Keys that this process works for, all by one statement, and says which it has lost. */
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import { type KeyHold, renewKeys } from '../../db/idempotency-hold.ts';

export interface KeyKeeper {
  /** @returns ends the renewal; the signal aborts when another process has taken over */
  hold(hold: KeyHold): { readonly lost: AbortSignal; readonly release: () => void };
  stop(): void;
}

/** A key that is not renewed for 10 s may be taken over. */
const renewalMs = 2_500;

export const createKeyKeeper = ({ db, logger }: { readonly db: Db; readonly logger: Logger }): KeyKeeper => {
  const held = new Map<KeyHold, AbortController>();

  const renew = async (): Promise<void> => {
    const now = [...held.keys()];
    if (now.length === 0) return;
    const kept = await renewKeys(db, now);
    for (const hold of now) if (!kept.has(hold.holder)) held.get(hold)?.abort('abandoned');
  };

  let timer: NodeJS.Timeout | null = null;
  const schedule = (): void => {
    timer = setTimeout(() => {
      renew()
        .catch((error: unknown) => logger.warn({ err: error }, 'idempotency keys could not be renewed'))
        .finally(schedule);
    }, renewalMs).unref();
  };
  schedule();

  return {
    hold: (hold) => {
      const lost = new AbortController();
      held.set(hold, lost);
      return { lost: lost.signal, release: () => held.delete(hold) };
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
};
