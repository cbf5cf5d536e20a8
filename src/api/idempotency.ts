/** The `Idempotency-Key` of a request, and how its answer says that it is not the first. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AnswerHeaders } from './route.ts';
import { IdempotencyKey } from './routes/parameters.ts';

export const KeyHeaders = z.object({
  'idempotency-key': IdempotencyKey.meta({
    description: 'A repeated request with this key gets the same answer instead of starting something else.',
  }),
});

export function readIdempotency(
  { 'idempotency-key': key }: z.output<typeof KeyHeaders>,
  bytes: Buffer,
): { readonly key: string; readonly bodySha256: Buffer } | null {
  return key === undefined ? null : { key, bodySha256: createHash('sha256').update(bytes).digest() };
}

export function markReplayed(isReplayed: boolean): AnswerHeaders {
  return isReplayed ? { 'Idempotent-Replayed': 'true' } : {};
}
