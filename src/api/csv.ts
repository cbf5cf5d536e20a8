/** Lists that are also answered as one stream of CSV. */
import { Readable } from 'node:stream';
import { type CancelSignal, toAbortSignal } from '@capstan/core/cancellation';
import { z } from 'zod';

export const AcceptHeader = z.object({ accept: z.string().max(1_000).optional() });

export function wantsCsv(format: 'json' | 'csv', accept: string | undefined): boolean {
  return format === 'csv' || accept?.includes('text/csv') === true;
}

/** If the stream fails, the connection breaks. @param pieces of RFC 4180 text */
export function answerCsv(
  name: string,
  pieces: Iterable<string> | AsyncIterable<string>,
  signal: CancelSignal,
) {
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/csv; charset=utf-8; header=present',
      'Content-Disposition': `attachment; filename="${name}.csv"`,
    },
    body: () => Readable.from(pieces, { objectMode: false, signal: toAbortSignal(signal) }),
  } as const;
}
