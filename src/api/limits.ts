/**
 * Limits of the HTTP API: enforced here, shown at /v1/limits.
 *
 * They bound the load of one sender on a process, so that other senders get their turn: the request rate of a key, its
 * open requests, its parallel reads of history, and the rates of wrong keys and new sessions. Each process counts
 * separately.
 */

import { mostValues } from '@capstan/core/contracts/limits';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import type { JsonLimits } from '@capstan/core/json/scan';
import { createTally } from '@capstan/core/tally';
import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Config } from '../config.ts';
import { createKeyBuckets, describeEmpty } from '../parts/access/key-rates.ts';
import type { KeyHolder } from '../parts/access/verified-keys.ts';
import type { BodySize } from './input.ts';

export type ApiConfig = RateConfig &
  Pick<
    Config,
    | 'BODIES_BYTES'
    | 'BODY_LIMIT_BYTES'
    | 'CHAT_LIMIT_BYTES'
    | 'CHAT_MESSAGES'
    | 'CHAT_TOOLS'
    | 'DEFINITION_LIMIT_BYTES'
    | 'MEDIA_LIMIT_BYTES'
    | 'OPEN_RUNS_PER_PROJECT'
    | 'PUBLIC_URL'
    | 'TEMPORAL_UI_URL'
  >;

export interface BodyLimits extends JsonLimits {
  readonly bytes: number;
}

const stringBytes = 262_144;

export function bodyLimits(config: ApiConfig): Readonly<Record<BodySize, BodyLimits>> {
  const { BODY_LIMIT_BYTES, CHAT_LIMIT_BYTES, DEFINITION_LIMIT_BYTES } = config;
  const wide = { depth: 100, keys: mostValues, values: mostValues, stringBytes };
  // Pictures and recordings come as text.
  const chatBytes = Math.max(BODY_LIMIT_BYTES, CHAT_LIMIT_BYTES);
  return {
    small: { bytes: 4_096, depth: 8, keys: 32, values: 64, stringBytes: 4_096 },
    request: { bytes: BODY_LIMIT_BYTES, depth: 64, keys: 1_000, values: 10_000, stringBytes },
    data: { bytes: BODY_LIMIT_BYTES, ...wide },
    chat: { bytes: chatBytes, ...wide, stringBytes: chatBytes, anyCharacters: true },
    definition: { bytes: DEFINITION_LIMIT_BYTES, ...wide },
  };
}

export const httpLimits = {
  /** Total time for a JSON or YAML body. */
  bodyTimeoutMs: 30_000,
  /** Maximum gap between two chunks of a media file. */
  mediaIdleMs: 60_000,
  /** Maximum time without traffic on a connection while a request is handled. */
  idleMs: 120_000,
  keepAliveMs: 65_000,
  headerBytes: 16_384,
  connections: 2_000,
  /** Longest `Prefer: wait`. */
  waitSeconds: 60,
  eventCommentMs: 15_000,
} as const;

// Token buckets: a burst of `burst` requests, then `perSecond`. They live in the memory of one process, which keeps the
// 10,000 holders that asked last. A dropped holder starts again with a full bucket.

export interface TokenRate {
  readonly perSecond: number;
  readonly burst: number;
}

interface TokenBuckets {
  /** Takes one token. @returns 0, or the seconds until the next token; then it took none */
  take(holder: string): number;
}

/** @param now milliseconds of a monotonic clock */
export function createTokenBuckets({ perSecond, burst }: TokenRate, now: () => number): TokenBuckets {
  const buckets = new LRUCache<string, { tokens: number; at: number }>({ max: 10_000 });
  return {
    take: (holder) => {
      const at = now();
      const known = buckets.get(holder) ?? { tokens: burst, at };
      const tokens = Math.min(burst, known.tokens + ((at - known.at) / 1_000) * perSecond);
      buckets.set(holder, { tokens: tokens >= 1 ? tokens - 1 : tokens, at });
      return tokens >= 1 ? 0 : (1 - tokens) / perSecond;
    },
  };
}

/** Each kind has its own buckets, so that heartbeats succeed whatever else a key does. */
export type RateKind = 'request' | 'start' | 'escalation' | 'heartbeat' | 'session';

/**
 * The load of a route while it is open. `history`: reads past data through a connection pool of its own; the reads of a
 * key queue up. `stream`: stays open as long as the client wants.
 */
export type OpenKind = 'request' | 'stream' | 'history';

type RateConfig = Pick<
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

/**
 * Parallel history reads of a key. On two processors, twenty readers made the calls of another project wait 3.5 times
 * as long at the 99th percentile with two, and 1.9 times with one (`npm run bench -- readers`).
 */
const historyAtOnce = 1;

/** A per-second rate, with a burst of five seconds. */
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
    // After an outage all instances of a key send heartbeats together.
    heartbeat: { perSecond: config.RATE_HEARTBEATS_PER_S, burst: 20 * config.RATE_HEARTBEATS_PER_S },
    session: byMinute(config.RATE_SESSIONS_PER_MIN),
    wrong_key: byMinute(config.RATE_WRONG_KEYS_PER_MIN),
    // All clients behind a proxy share one address.
    open_body: { perSecond: 20, burst: 100 },
  };
}

export interface RateLimits {
  /** @throws AppError `rate_limited` */
  ask(kind: RateKind, keyId: string): void;
  /** Counts a request against the rate of its key and of the keys above it. @throws AppError `rate_limited` */
  askKey(kind: RateKind, holder: Pick<KeyHolder, 'rates'>): void;
  /**
   * Counts a request as open.
   * @returns a function that counts it as ended
   * @throws AppError `rate_limited` when the key has too many open requests
   */
  enter(kind: OpenKind, keyId: string): () => void;
  /** Queues `read` behind other history reads of the key. */
  inLine<T>(keyId: string, read: () => Promise<T>): Promise<T>;
  /** Counts a wrong key; valid keys of the same address still pass. @throws AppError `rate_limited` */
  sawWrongKey(address: string): void;
  /** Counts a request without a key before its body is read. @throws AppError `rate_limited` */
  sawOpenBody(address: string): void;
}

const unlimited: Omit<RateLimits, 'askKey'> = {
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

/** Limits that a key was given; they hold even where those of the server are off. */
function createKeyRates(now: () => number): Pick<RateLimits, 'askKey'> {
  const buckets = createKeyBuckets(now);
  return {
    askKey: (kind, { rates }) => {
      if (kind === 'heartbeat' || rates === undefined || rates.requests.length === 0) return;
      const empty = buckets.take(rates.requests, 1);
      if (empty === null) return;
      const message = describeEmpty(empty, `too many requests of ${empty.key_id}`);
      throw new AppError('rate_limited', message, { retryAfterS: empty.waitS });
    },
  };
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

/** One queue per key that has reads. */
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

/** @param now milliseconds of a monotonic clock */
export function createRateLimits(config: RateConfig, now: () => number): RateLimits {
  const keyRates = createKeyRates(now);
  if (config.RATE_LIMITS === 'off') return { ...unlimited, ...keyRates };
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
    ...keyRates,
    ...createOpenCounts(config),
    inLine: createLines(historyAtOnce),
    sawWrongKey: (address) => take('wrong_key', address, `too many wrong keys from ${address}`),
    sawOpenBody: (address) => take('open_body', address, `too many requests without a key from ${address}`),
  };
}

interface ChatParts {
  readonly messages: readonly unknown[];
  readonly tools?: readonly unknown[] | undefined;
}

/** @throws AppError `request_invalid` for more messages or tools than are allowed */
export function requireSmallChat(
  { messages, tools = [] }: ChatParts,
  { CHAT_MESSAGES, CHAT_TOOLS }: Pick<ApiConfig, 'CHAT_MESSAGES' | 'CHAT_TOOLS'>,
): void {
  const refuse = (field: string, count: number, most: string): AppError =>
    refuseField(`/${field}`, `${count} ${field}; at most ${most}`);
  if (messages.length > CHAT_MESSAGES)
    throw refuse('messages', messages.length, `${CHAT_MESSAGES} are allowed (CHAT_MESSAGES)`);
  if (tools.length > CHAT_TOOLS)
    throw refuse('tools', tools.length, `${CHAT_TOOLS} are allowed (CHAT_TOOLS)`);
}

/** Checks the size of a job inside a larger body: the limit is that of a job that is sent by itself. */
export function findJobFault(job: JsonObject | undefined, limitBytes: number): AppError | null {
  const bytes = job === undefined ? 0 : Buffer.byteLength(JSON.stringify(job));
  if (bytes <= limitBytes) return null;
  return new AppError('job_invalid', `the job has ${bytes} bytes; at most ${limitBytes} are allowed`);
}

/** Checks the job of a body that is larger than a job may be. @throws AppError `job_invalid` */
export function requireSmallJob(
  job: JsonObject | undefined,
  { length }: Buffer,
  { BODY_LIMIT_BYTES: limit }: Pick<ApiConfig, 'BODY_LIMIT_BYTES'>,
): void {
  const fault = length > limit ? findJobFault(job, limit) : null;
  if (fault !== null) throw fault;
}
