/**
 * Shows spending, limits and the ledger behind them, for the caller's project.
 *
 * The ledger is read in pages, or as CSV, of which one page at a time is in memory.
 */

import {
  type CostPeriod,
  type CostSeries,
  type CostSeriesQuery,
  type CostSummary,
  LedgerEntry,
  type LedgerQuery,
} from '@capstan/core/contracts/money';
import { toWire } from '@capstan/core/contracts/to-wire';
import { AppError } from '@capstan/core/errors/app-error';
import { formatNanoUsd, fromNanoUsd } from '@capstan/core/money/nano-usd';
import { z } from 'zod';
import type { Ctx, ServerCtx } from '../../context.ts';
import {
  type CostPointRow,
  type LedgerPlace,
  type LedgerRow,
  listCostPoints,
  listLedger,
  readCostSpan,
  readSpending,
} from '../../db/money/spending.ts';
import type { Caller } from '../access/caller.ts';
import { decodeCursor, refuseCursor, toPage } from '../cursor.ts';

const mostSeries = 50;
const others = 'others';

type Sums = ReadonlyMap<string, ReadonlyMap<number, bigint>>;

function sumByName(rows: readonly CostPointRow[], rename: (name: string) => string): Sums {
  const sums = new Map<string, Map<number, bigint>>();
  for (const { name, at, nano } of rows) {
    const shown = rename(name);
    const points = sums.get(shown) ?? new Map<number, bigint>();
    points.set(at.getTime(), (points.get(at.getTime()) ?? 0n) + BigInt(nano));
    sums.set(shown, points);
  }
  return sums;
}

function totalOf(points: ReadonlyMap<number, bigint>): bigint {
  return [...points.values()].reduce((sum, nano) => sum + nano, 0n);
}

function byTotal(sums: Sums): readonly string[] {
  const totals = [...sums].map(([name, points]) => ({ name, total: totalOf(points) }));
  return totals.sort((a, b) => (b.total > a.total ? 1 : b.total < a.total ? -1 : 0)).map(({ name }) => name);
}

function toSeries(rows: readonly CostPointRow[]): CostSeries['series'] {
  const shown = new Set(byTotal(sumByName(rows, (name) => name)).slice(0, mostSeries));
  const sums = sumByName(rows, (name) => (shown.has(name) ? name : others));
  return byTotal(sums).map((name) => {
    const points = [...(sums.get(name) ?? [])].sort(([a], [b]) => a - b);
    return {
      name,
      points: points.map(([at, nano]): [string, number] => [new Date(at).toISOString(), fromNanoUsd(nano)]),
    };
  });
}

type HistoryCtx = Pick<ServerCtx, 'historyDb'>;

/** Reads the costs of a project's calls over time, as one series for each value of the grouping. */
export async function readCostSeries(
  { historyDb }: HistoryCtx,
  { project_id }: Caller,
  query: CostSeriesQuery,
): Promise<CostSeries> {
  const row = await readCostSpan(historyDb, project_id, query.period);
  if (row === undefined) throw new AppError('not_found', `no project ${project_id}`);
  const { timezone, today, first_day } = row;
  const from = first_day ?? today;
  const points = await listCostPoints(historyDb, project_id, {
    timezone,
    span: [from, today],
    bucket: query.bucket,
    by: query.by,
  });
  return {
    from,
    to: today,
    series: toSeries(points),
    daily_limit_usd: fromNanoUsd(BigInt(row.daily_limit_nano)),
  };
}

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
  const { amount_nano, overrun_nano, day: window } = row;
  const overrun_usd = overrun_nano === null ? null : fromNanoUsd(BigInt(overrun_nano));
  return toWire(LedgerEntry, {
    ...row,
    window,
    amount_usd: fromNanoUsd(BigInt(amount_nano)),
    overrun_usd,
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
};

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function toLine(texts: readonly string[]): string {
  return `${texts.map(quote).join(',')}\r\n`;
}

/** Pieces of RFC 4180 text, the header line first. The query's page size and cursor are ignored. */
export async function* exportLedger(
  { historyDb }: HistoryCtx,
  { project_id }: Caller,
  query: LedgerQuery,
): AsyncGenerator<string, void, undefined> {
  yield toLine(Object.keys(columns));
  let after: LedgerPlace | null = null;
  for (;;) {
    const page = { ...query, after, limit: csvPage };
    const rows: readonly LedgerRow[] = await listLedger(historyDb, project_id, page);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => toLine(Object.values(columns).map((read) => read(row)))).join('');
    if (rows.length < csvPage) return;
    after = last;
  }
}

function toUsd(nano: string): number {
  return fromNanoUsd(BigInt(nano));
}

export async function readCosts(
  { db }: Pick<Ctx, 'db'>,
  { project_id }: Caller,
  period: CostPeriod,
): Promise<CostSummary> {
  const row = await readSpending(db, project_id, period);
  if (row === undefined) throw new AppError('not_found', `no project ${project_id}`);
  return {
    today_spend_usd: toUsd(row.today_nano),
    today_saved_usd: toUsd(row.saved_nano),
    daily_limit_usd: toUsd(row.daily_limit_nano),
    reserved_usd: toUsd(row.reserved_nano),
    period,
    from: row.first_day,
    to: row.today,
    timezone: row.timezone,
    spend_usd: toUsd(row.spent_nano),
    by_capability: row.by_capability.map(({ capability, spent_nano }) => ({
      capability,
      spend_usd: toUsd(spent_nano),
    })),
  };
}
