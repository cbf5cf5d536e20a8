/** How often a key may ask, and how often an address may send a wrong key: in each process by itself. */
import type { Config } from '../config.ts';
import { AppError } from '../errors/app-error.ts';
import { createTokenBuckets, type TokenRate } from './token-buckets.ts';

/** Every kind has buckets of its own, so that heartbeats get through whatever else a key does. */
export type RateKind = 'request' | 'start' | 'escalation' | 'heartbeat';

export type RateConfig = Pick<
  Config,
  | 'RATE_LIMITS'
  | 'RATE_REQUESTS_PER_S'
  | 'RATE_STARTS_PER_S'
  | 'RATE_ESCALATIONS_PER_MIN'
  | 'RATE_HEARTBEATS_PER_S'
  | 'RATE_WRONG_KEYS_PER_MIN'
>;

/** Five seconds' worth at once, where the rate is one of seconds. */
function bySecond(rate: number): TokenRate {
  return { perSecond: rate, burst: 5 * rate };
}

function byMinute(rate: number): TokenRate {
  return { perSecond: rate / 60, burst: rate };
}

type Rates = Readonly<Record<RateKind | 'wrong_key', TokenRate>>;

export function ratesOf(config: RateConfig): Rates {
  return {
    request: bySecond(config.RATE_REQUESTS_PER_S),
    start: bySecond(config.RATE_STARTS_PER_S),
    escalation: byMinute(config.RATE_ESCALATIONS_PER_MIN),
    // After an outage all instances of a key come at once.
    heartbeat: { perSecond: config.RATE_HEARTBEATS_PER_S, burst: 20 * config.RATE_HEARTBEATS_PER_S },
    wrong_key: byMinute(config.RATE_WRONG_KEYS_PER_MIN),
  };
}

export interface RateLimits {
  /** @throws AppError `rate_limited` */
  ask(kind: RateKind, keyId: string): void;
  /** Keys that are right pass whatever else their address sends. @throws AppError `rate_limited` */
  sawWrongKey(address: string): void;
}

const unlimited: RateLimits = { ask: () => undefined, sawWrongKey: () => undefined };

function refuse(what: string, { perSecond, burst }: TokenRate, wait: number): AppError {
  const rate = perSecond < 1 || burst < 5 * perSecond ? `${burst} a minute` : `${perSecond} a second`;
  const message = `${what}: ${rate} are allowed, ${burst} at once; try again in ${wait.toFixed(2)} s`;
  return new AppError('rate_limited', message, { retryAfterS: wait });
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
    wrong_key: createTokenBuckets(rates.wrong_key, now),
  };
  const take = (kind: keyof Rates, holder: string, what: string): void => {
    const wait = buckets[kind].take(holder);
    if (wait > 0) throw refuse(what, rates[kind], wait);
  };
  return {
    ask: (kind, keyId) => take(kind, keyId, `too many of ${keyId}'s requests of the kind ${kind}`),
    sawWrongKey: (address) => take('wrong_key', address, `too many wrong keys from ${address}`),
  };
}
