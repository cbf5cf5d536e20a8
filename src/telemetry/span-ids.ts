/** Ids of spans. One that has a key has the first eight bytes of its SHA-256, so that every process knows it. */
import { createHash, randomBytes } from 'node:crypto';
import type { SpanStart } from '../core/telemetry/tracing.ts';

/** As the SDK asks for ids: without saying for what. Starting a span asks at once, so what was prepared last is meant. */
export interface PreparedIds {
  prepare(span: Pick<SpanStart, 'key' | 'trace_id'>): void;
  generateSpanId(): string;
  generateTraceId(): string;
}

export function spanIdOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16);
}

/** A pool, because asking for eight bytes costs as much as asking for thousands. */
const pooled = 4_096;

export function createSpanIds(): PreparedIds {
  let pool = '';
  let next: Pick<SpanStart, 'key' | 'trace_id'> = {};
  const take = (digits: number): string => {
    if (pool.length < digits) pool = randomBytes(pooled).toString('hex');
    const taken = pool.slice(0, digits);
    pool = pool.slice(digits);
    return /[1-9a-f]/.test(taken) ? taken : take(digits);
  };
  return {
    prepare: (span) => {
      next = span;
    },
    generateSpanId: () => (next.key === undefined ? take(16) : spanIdOf(next.key)),
    generateTraceId: () => next.trace_id ?? take(32),
  };
}
