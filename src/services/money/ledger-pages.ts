/** The ledger in pages, and as one CSV text of which a page at a time is in memory. */
import { z } from 'zod';
import type { LedgerEntry, LedgerQuery } from '../../contracts/money.ts';
import { formatNanoUsd, fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { type LedgerPlace, type LedgerRow, listLedger } from '../../db/money/ledger.ts';
import { AppError } from '../../errors/app-error.ts';
import { decodeCursor, toPage } from '../cursor.ts';

const csvPage = 1_000;

const Place = z.templateLiteral([z.iso.date(), '.', z.string().regex(/^\d{1,18}$/)]);

function toCursor({ day, entry_id }: LedgerPlace): string {
  return `${day}.${entry_id}`;
}

function readCursor(cursor: string | undefined): LedgerPlace | null {
  if (cursor === undefined) return null;
  const place = Place.safeParse(decodeCursor(cursor));
  const [day, entry_id] = place.success ? place.data.split('.') : [];
  if (day !== undefined && entry_id !== undefined) return { day, entry_id };
  throw new AppError('request_invalid', 'the cursor is none that the ledger answered as next_cursor', {
    errors: [{ pointer: '/query/cursor', code: 'invalid_cursor', message: 'not a next_cursor of this list' }],
  });
}

function toEntry(row: LedgerRow): LedgerEntry {
  return {
    entry_id: row.entry_id,
    at: row.at.toISOString(),
    attempt_id: row.attempt_id,
    kind: row.kind,
    amount_usd: fromNanoUsd(BigInt(row.amount_nano)),
    certainty: row.certainty,
    window: row.day,
    capability: row.capability,
    ...(row.endpoint === null ? {} : { endpoint: row.endpoint }),
    ...(row.run_id === null ? {} : { run_id: row.run_id }),
    ...(row.step_id === null ? {} : { step_id: row.step_id }),
  };
}

export async function readLedgerPage(db: Db, projectId: string, query: LedgerQuery) {
  const filter = { ...query, after: readCursor(query.cursor), limit: query.limit + 1 };
  const rows = await listLedger(db, projectId, filter);
  return toPage(rows, query.limit, { key: toCursor, item: toEntry });
}

const columns: Readonly<Record<keyof LedgerEntry, (row: LedgerRow) => string>> = {
  entry_id: (row) => row.entry_id,
  at: (row) => row.at.toISOString(),
  attempt_id: (row) => row.attempt_id,
  kind: (row) => row.kind,
  amount_usd: (row) => formatNanoUsd(BigInt(row.amount_nano)),
  certainty: (row) => row.certainty,
  window: (row) => row.day,
  capability: (row) => row.capability,
  endpoint: (row) => row.endpoint ?? '',
  run_id: (row) => row.run_id ?? '',
  step_id: (row) => row.step_id ?? '',
};

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function toLine(texts: readonly string[]): string {
  return `${texts.map(quote).join(',')}\r\n`;
}

/** Pieces of RFC 4180 text, a header line first. Page size and cursor of the query do not count. */
export async function* exportLedger(
  db: Db,
  projectId: string,
  query: LedgerQuery,
): AsyncGenerator<string, void, undefined> {
  yield toLine(Object.keys(columns));
  let after: LedgerPlace | null = null;
  for (;;) {
    const rows: readonly LedgerRow[] = await listLedger(db, projectId, { ...query, after, limit: csvPage });
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => toLine(Object.values(columns).map((read) => read(row)))).join('');
    if (rows.length < csvPage) return;
    after = last;
  }
}
