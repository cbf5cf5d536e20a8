/**
 * How much one sender may ask of a process, so that the others get their turn: how often a key asks, how many of its
 * requests are open at once, how much of what has been it reads at once, and how often an address sends a wrong key or
 * opens a session. Each process counts by itself.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import type { Config } from '../config.ts';
import { createTally } from '../core/tally.ts';
import { AppError } from '../errors/app-error.ts';
import { createTokenBuckets, type TokenRate } from './token-buckets.ts';

/** Every kind has buckets of its own, so that heartbeats get through whatever else a key does. */
export type RateKind = 'request' | 'start' | 'escalation' | 'heartbeat' | 'session';

/**
 * What a route does while it is open. `history`: reads what has been, over a pool of the database of its own; of a key
 * a few at once, the others wait in line. `stream`: stays open for as long as its client likes.
 */
export type OpenKind = 'request' | 'stream' | 'history';

export type RateConfig = Pick<
  Config,
  | 'RATE_LIMITS'
  | 'RATE_REQUESTS_PER_S'
  | 'RATE_STARTS_PER_S'
  | 'RATE_ESCALATIONS_PER_MIN'
  | 'RATE_HEARTBEATS_PER_S'
  | 'RATE_SESSIONS_PER_MIN'
  | 'RATE_WRONG_KEYS_PER_MIN'
  | 'REQUESTS_AT_ONCE'
  | 'STREAMS_AT_ONCE'
>;

/** Of the pool for what has been; the rest of it is for other keys. */
const historyAtOnce = 4;

/** Five seconds' worth at once, where the rate is one of seconds. */
function bySecond(rate: number): TokenRate {
  return { perSecond: rate, burst: 5 * rate };
}

function byMinute(rate: number): TokenRate {
  return { perSecond: rate / 60, burst: rate };
}

type Rates = Readonly<Record<RateKind | 'wrong_key' | 'open_body', TokenRate>>;

export function ratesOf(config: RateConfig): Rates {
  return {
    request: bySecond(config.RATE_REQUESTS_PER_S),
    start: bySecond(config.RATE_STARTS_PER_S),
    escalation: byMinute(config.RATE_ESCALATIONS_PER_MIN),
    // After an outage all instances of a key come at once.
    heartbeat: { perSecond: config.RATE_HEARTBEATS_PER_S, burst: 20 * config.RATE_HEARTBEATS_PER_S },
    session: byMinute(config.RATE_SESSIONS_PER_MIN),
    wrong_key: byMinute(config.RATE_WRONG_KEYS_PER_MIN),
    // A proxy is one address for all who come through it.
    open_body: { perSecond: 20, burst: 100 },
  };
}

export interface RateLimits {
  /** @throws AppError `rate_limited` */
  ask(kind: RateKind, keyId: string): void;
  /**
   * Counts a request as open.
   * @returns says that it is over
   * @throws AppError `rate_limited` when the key has as many open as it may have
   */
  enter(kind: OpenKind, keyId: string): () => void;
  /** At most `historyAtOnce` of a key at a time; the others begin when one of them has ended. */
  inLine<T>(keyId: string, read: () => Promise<T>): Promise<T>;
  /** Keys that are right pass whatever else their address sends. @throws AppError `rate_limited` */
  sawWrongKey(address: string): void;
  /** Before a body is read of a sender of whom nothing is known. @throws AppError `rate_limited` */
  sawOpenBody(address: string): void;
}

const unlimited: RateLimits = {
  ask: () => undefined,
  enter: () => () => undefined,
  inLine: (_, read) => read(),
  sawWrongKey: () => undefined,
  sawOpenBody: () => undefined,
};

function refuse(what: string, { perSecond, burst }: TokenRate, wait: number): AppError {
  const rate = perSecond < 1 || burst < 5 * perSecond ? `${burst} a minute` : `${perSecond} a second`;
  const message = `${what}: ${rate} are allowed, ${burst} at once; try again in ${wait.toFixed(2)} s`;
  return new AppError('rate_limited', message, { retryAfterS: wait });
}

type OpenCounts = Pick<RateLimits, 'enter'>;

function createOpenCounts({ REQUESTS_AT_ONCE, STREAMS_AT_ONCE }: RateConfig): OpenCounts {
  const open = { requests: createTally(), streams: createTally() };
  return {
    enter: (kind, keyId) => {
      const isStream = kind === 'stream';
      const [counts, most, what] = isStream
        ? [open.streams, STREAMS_AT_ONCE, 'streams']
        : [open.requests, REQUESTS_AT_ONCE, 'requests'];
      const count = counts.of(keyId);
      if (count >= most) {
        const message = `${keyId} has ${count} ${what} open, and ${most} are allowed at once; try again when one has ended`;
        throw new AppError('rate_limited', message, { retryAfterS: 1 });
      }
      counts.add(keyId, 1);
      return () => counts.add(keyId, -1);
    },
  };
}

/** A line for each key that reads now. */
function createLines(atOnce: number): RateLimits['inLine'] {
  const lines = new Map<string, LimitFunction>();
  return async (keyId, read) => {
    const line = lines.get(keyId) ?? pLimit(atOnce);
    lines.set(keyId, line);
    try {
      return await line(read);
    } finally {
      if (line.activeCount + line.pendingCount === 0) lines.delete(keyId);
    }
  };
}

/** @param now milliseconds of a clock that does not go back */
export function createRateLimits(config: RateConfig, now: () => number): RateLimits {
  if (config.RATE_LIMITS === 'off') return unlimited;
  const rates = ratesOf(config);
  const buckets = {
    request: createTokenBuckets(rates.request, now),
    start: createTokenBuckets(rates.start, now),
    escalation: createTokenBuckets(rates.escalation, now),
    heartbeat: createTokenBuckets(rates.heartbeat, now),
    session: createTokenBuckets(rates.session, now),
    wrong_key: createTokenBuckets(rates.wrong_key, now),
    open_body: createTokenBuckets(rates.open_body, now),
  };
  const take = (kind: keyof Rates, holder: string, what: string): void => {
    const wait = buckets[kind].take(holder);
    if (wait > 0) throw refuse(what, rates[kind], wait);
  };
  return {
    ask: (kind, keyId) => take(kind, keyId, `too many of ${keyId}'s requests of the kind ${kind}`),
    ...createOpenCounts(config),
    inLine: createLines(historyAtOnce),
    sawWrongKey: (address) => take('wrong_key', address, `too many wrong keys from ${address}`),
    sawOpenBody: (address) => take('open_body', address, `too many requests without a key from ${address}`),
  };
}
