/**
 * Shows spending, limits and the ledger behind them, for the caller's project.
 *
 * The ledger is read in pages, or as CSV, of which one page at a time is in memory.
 */

import { addDays, dayStart, lastDayOf } from '@capstan/core/calendar/days';
import {
  type CostQuery,
  type CostSummary,
  LedgerEntry,
  type LedgerQuery,
} from '@capstan/core/contracts/money';
import { toWire } from '@capstan/core/contracts/to-wire';
import { forecastSpend } from '@capstan/core/money/forecast';
import { formatNanoUsd, fromNanoUsd } from '@capstan/core/money/nano-usd';
import { z } from 'zod';
import type { Ctx, ServerCtx } from '../../context.ts';
import { type LedgerPlace, type LedgerRow, listLedger, readSpending } from '../../db/money/spending.ts';
import type { Caller } from '../access/caller.ts';
import { toCsvLine } from '../csv.ts';
import { decodeCursor, refuseCursor, toPage } from '../cursor.ts';
import { showHeld } from '../routing/held-pieces.ts';
import { type CostDays, readCostDays } from './cost-series.ts';

type HistoryCtx = Pick<ServerCtx, 'historyDb'>;

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
  throw refuseCursor('the ledger');
}

function toEntry(row: LedgerRow): LedgerEntry {
  const { amount_nano, overrun_nano, grown, day: window } = row;
  const overrun_usd = overrun_nano === null ? null : fromNanoUsd(BigInt(overrun_nano));
  return toWire(LedgerEntry, {
    ...row,
    window,
    amount_usd: fromNanoUsd(BigInt(amount_nano)),
    overrun_usd,
    ...showHeld(grown),
  });
}

export async function readLedger({ historyDb }: HistoryCtx, { project_id }: Caller, query: LedgerQuery) {
  const filter = { ...query, after: readCursor(query.cursor), limit: query.limit + 1 };
  const rows = await listLedger(historyDb, project_id, filter);
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
  overrun_usd: ({ overrun_nano }) => (overrun_nano === null ? '' : formatNanoUsd(BigInt(overrun_nano))),
  held_usd: ({ grown }) => (grown === null ? '' : formatNanoUsd(BigInt(grown.reserved_nano))),
  pieces: ({ grown }) => (grown?.piece_nano ?? []).map((nano) => formatNanoUsd(BigInt(nano))).join(' '),
};

/** Pieces of RFC 4180 text, the header line first. The query's page size and cursor are ignored. */
export async function* exportLedger(
  { historyDb }: HistoryCtx,
  { project_id }: Caller,
  query: LedgerQuery,
): AsyncGenerator<string, void, undefined> {
  yield toCsvLine(Object.keys(columns));
  let after: LedgerPlace | null = null;
  for (;;) {
    const page = { ...query, after, limit: csvPage };
    const rows: readonly LedgerRow[] = await listLedger(historyDb, project_id, page);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => toCsvLine(Object.values(columns).map((read) => read(row)))).join('');
    if (rows.length < csvPage) return;
    after = last;
  }
}

function toUsd(nano: string): number {
  return fromNanoUsd(BigInt(nano));
}

function endOf(query: CostQuery, { span, today }: CostDays): string | null {
  return query.from === undefined
    ? lastDayOf(query.period ?? 'day', today)
    : span.to > today
      ? span.to
      : null;
}

/** What a span that has begun will have cost at its end. */
function forecastOf(query: CostQuery, days: CostDays, spentNano: string): number | null {
  const last = endOf(query, days);
  if (last === null) return null;
  const opened = dayStart(days.span.from, days.timezone);
  const closes = dayStart(addDays(last, 1), days.timezone);
  const forecast = forecastSpend({ opened, closes, spent: Number(spentNano) }, days.now.getTime());
  return forecast === null ? null : fromNanoUsd(BigInt(Math.round(forecast.spent)));
}

export async function readCosts(
  { db }: Pick<Ctx, 'db'>,
  { project_id }: Caller,
  query: CostQuery,
): Promise<CostSummary> {
  const days = await readCostDays(db, project_id, query);
  const { today, timezone, span } = days;
  const from = query.period === 'all' ? null : span.from;
  const row = await readSpending(db, project_id, { from, to: span.to, today, timezone });
  return {
    today_spend_usd: toUsd(row.today_nano),
    today_saved_usd: toUsd(row.saved_nano),
    daily_limit_usd: toUsd(days.daily_limit_nano),
    reserved_usd: toUsd(row.reserved_nano),
    period: query.from === undefined ? (query.period ?? 'day') : null,
    from,
    to: span.to,
    timezone,
    spend_usd: toUsd(row.spent_nano),
    forecast_usd: forecastOf(query, days, row.spent_nano),
    by_capability: row.by_capability.map(({ capability, spent_nano }) => ({
      capability,
      spend_usd: toUsd(spent_nano),
    })),
  };
}
