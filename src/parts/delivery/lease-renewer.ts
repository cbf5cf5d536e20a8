/**
 * Renews the leases of this process (of attempts and Idempotency-Keys), all by one statement per interval, and notifies
 * owners that have lost theirs. A renewal that hangs does not delay others.
 */

import { LiveList } from '@capstan/core/live-list';
import { within } from '@capstan/core/pacing';
import type { Logger } from 'pino';

export interface LeaseRenewer<Hold> {
  /** @param onLost called once when another process has taken the lease @returns ends the renewal */
  hold(hold: Hold, onLost: () => void): () => void;
  close(): void;
}

export interface LeaseRenewerOptions<Hold> {
  /** @returns the leases that are still its own, by their ids */
  readonly renew: (held: readonly Hold[]) => Promise<ReadonlySet<string>>;
  readonly idOf: (hold: Hold) => string;
  readonly intervalMs: number;
  /** Time to the next attempt, when the database does not answer. */
  readonly retryMs: number;
  readonly logger: Logger;
}

interface Holding<Hold> {
  readonly hold: Hold;
  readonly onLost: () => void;
}

const longestRenewalMs = 5_000;

export function createLeaseRenewer<Hold>({
  renew,
  idOf,
  intervalMs,
  retryMs,
  logger,
}: LeaseRenewerOptions<Hold>): LeaseRenewer<Hold> {
  const held = new LiveList<Holding<Hold>>();
  const longestMs = Math.min(intervalMs, longestRenewalMs);
  const refuse = (): never => {
    throw new Error(`no answer within ${longestMs} ms`);
  };

  let timer: NodeJS.Timeout | null = null;
  const schedule = (pauseMs: number): void => {
    timer = setTimeout(() => {
      // A hanging renewal is abandoned; the next one uses another connection.
      within(renewAll(held, { renew, idOf }), longestMs, refuse).then(
        () => schedule(intervalMs),
        (error: unknown) => {
          logger.warn({ err: error }, 'leases and keys could not be renewed; retrying');
          schedule(retryMs);
        },
      );
    }, pauseMs).unref();
  };
  schedule(intervalMs);

  return {
    hold: (hold, onLost) => {
      const entry = held.add({ hold, onLost });
      return () => held.remove(entry);
    },
    close: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

async function renewAll<Hold>(
  held: LiveList<Holding<Hold>>,
  { renew, idOf }: Pick<LeaseRenewerOptions<Hold>, 'renew' | 'idOf'>,
): Promise<void> {
  const now = held.entries();
  if (now.length === 0) return;
  const kept = await renew(now.map(({ member: { hold } }) => hold));
  for (const entry of now) {
    const { hold, onLost } = entry.member;
    if (!kept.has(idOf(hold)) && held.remove(entry)) onLost();
  }
}
