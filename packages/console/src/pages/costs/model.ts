/** What the page asks for, and costs by time as columns, by group as rows, each with the address of its calls. */
import {
  type CostGrouping,
  CostPeriod,
  type CostSeries,
  type CostSummary,
} from '@capstan/core/contracts/money';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { CallsSearch, CostsSearch } from '../../searches.ts';
import type { BarColumn } from '../../shared/bar-column.ts';
import { formatHour, formatMoment, formatUsd } from '../../shared/format.ts';

/** Quiet hues that also differ in lightness; further groups are combined. */
const seriesFills = [
  'fill-accent',
  'fill-person',
  'fill-done',
  'fill-waiting',
  'fill-running',
  'fill-quiet',
] as const;
const seriesDots = ['bg-accent', 'bg-person', 'bg-done', 'bg-waiting', 'bg-running', 'bg-quiet'] as const;
const lastFill = seriesFills.length - 1;

export const periodWords: Readonly<Record<CostPeriod, string>> = {
  day: 'today',
  yesterday: 'yesterday',
  week: 'this week',
  last_7_days: 'last 7 days',
  month: 'this month',
  last_month: 'last month',
  last_30_days: 'last 30 days',
  all: 'ever',
};

const ends: Partial<Record<CostPeriod, string>> = { day: 'day', week: 'week', month: 'month' };

/** The savings by results of equal calls; null for none. */
export function describeSaved({ today_saved_usd }: Pick<CostSummary, 'today_saved_usd'>): string | null {
  return today_saved_usd > 0 ? `saved today ${formatUsd(today_saved_usd)}` : null;
}

/** `at this rate $12 by the end of the month`; null where there is no rate or no end. */
export function describeEnd({
  period,
  forecast_usd,
}: Pick<CostSummary, 'period' | 'forecast_usd'>): string | null {
  if (forecast_usd === null) return null;
  const end = (period === null ? undefined : ends[period]) ?? 'span';
  return `at this rate ${formatUsd(forecast_usd)} by the end of the ${end}`;
}

/** A label is grouped by only once it has a name; the second group differs from the first one. */
export interface AskedGroups {
  readonly by: CostGrouping;
  readonly and: CostGrouping | null;
}

function toGrouping(by: CostsSearch['by'], label: string | undefined): CostGrouping | null {
  if (by === undefined) return null;
  if (by !== 'label') return by;
  return label === undefined ? null : `label:${label}`;
}

/** @returns null while the label has no name */
export function groupsOf({ by = 'capability', label, and, and_label }: CostsSearch): AskedGroups | null {
  const first = toGrouping(by, label);
  const second = toGrouping(and, and_label);
  return first === null ? null : { by: first, and: second === first ? null : second };
}

/** `label team`, `key` */
export function nameGrouping(by: CostGrouping): string {
  return by.replace(':', ' ');
}

/** Days of an address; without both, a period. */
export function spanOf({ from, to, period }: CostsSearch): Readonly<Record<string, string>> {
  if (from === undefined) return { period: period ?? 'week' };
  return to === undefined || to < from ? { from } : { from, to };
}

/** `2026-11-27 to 2026-11-28`, `yesterday` */
export function describeSpan(search: CostsSearch): string {
  const { period, from, to } = spanOf(search);
  if (from === undefined) return periodWords[CostPeriod.catch('week').parse(period)];
  return to === undefined ? `since ${from}` : from === to ? `on ${from}` : `${from} to ${to}`;
}

/** The filters of the page of calls. */
export type CallsAddress = Omit<CallsSearch, 'outcome' | 'direct'>;

type SeriesItem = CostSeries['series'][number];

function filterBy(by: CostGrouping, name: string): CallsAddress | null {
  if (name === '') return null;
  return by.startsWith('label:') ? { label: `${by.slice('label:'.length)}=${name}` } : { [by]: name };
}

/** @returns null: no filter selects these calls */
function filterOf({ name, and, is_rest }: SeriesItem, groups: AskedGroups): CallsAddress | null {
  const first = is_rest === true ? null : filterBy(groups.by, name);
  if (groups.and === null || first === null) return first;
  const second = filterBy(groups.and, and ?? '');
  return second === null || Object.keys(second).some((key) => key in first) ? null : { ...first, ...second };
}

export interface CostRow {
  readonly key: string;
  readonly names: readonly string[];
  /** What is behind a name that people gave. */
  readonly ids: string;
  readonly dot: string;
  readonly usd: number;
  readonly calls: number;
  readonly tokens: number;
  readonly address: CallsAddress | null;
}

function nameOf(name: string, title: string | undefined): string {
  return (title ?? name) || 'none';
}

export function toRows({ series, starts, until }: CostSeries, groups: AskedGroups): CostRow[] {
  return series.map((item, index) => {
    const { name, title, and, and_title, is_rest, usd, calls, tokens } = item;
    const filter = filterOf(item, groups);
    const crossed = groups.and === null || is_rest === true ? [] : [nameOf(and ?? '', and_title)];
    return {
      key: JSON.stringify([name, and, is_rest]),
      names: [is_rest === true ? 'all others' : nameOf(name, title), ...crossed],
      ids: [name, and].filter((id) => id !== undefined && id !== '').join(', '),
      dot: seriesDots[Math.min(index, lastFill)] ?? 'bg-quiet',
      usd,
      calls,
      tokens,
      address: filter === null ? null : { ...addressOf(starts[0], until), ...filter },
    };
  });
}

function addressOf(since: string | undefined, until: string): CallsAddress {
  return { ...(since === undefined ? {} : { since }), until };
}

/** The calls from one bucket to another. */
export function addressOfBuckets({ starts, until }: CostSeries, first: number, last: number): CallsAddress {
  return addressOf(starts[first], starts[last + 1] ?? until);
}

export interface CostColumn extends BarColumn {
  readonly usd: number;
  readonly calls: number;
  readonly tokens: number;
}

/** A column for each bucket, also of empty ones, of the most expensive groups and all others. */
export function toColumns(costs: CostSeries, rows: readonly CostRow[]): CostColumn[] {
  const { series, starts, timezone, bucket } = costs;
  const names = seriesFills.map((_, index) =>
    index === lastFill && series.length > seriesFills.length
      ? 'all others'
      : (rows[index]?.names.join(' × ') ?? ''),
  );
  const places = new Map(starts.map((at, index) => [at, index]));
  const sums = starts.map(() => ({ calls: 0, tokens: 0, values: seriesFills.map(() => 0n) }));
  for (const [index, { points }] of series.entries()) {
    for (const [at, usd, calls, tokens] of points) {
      const sum = sums[places.get(at) ?? -1];
      if (sum === undefined) continue;
      const fill = Math.min(index, lastFill);
      sum.values[fill] = (sum.values[fill] ?? 0n) + toNanoUsd(usd);
      sum.calls += calls;
      sum.tokens += tokens;
    }
  }
  return sums.map(({ values, calls, tokens }, index) => ({
    key: starts[index] ?? '',
    title: nameBucket(starts[index] ?? '', { bucket, timezone }),
    usd: fromNanoUsd(values.reduce((all, nano) => all + nano, 0n)),
    parts: values.map((nano, place) => ({
      name: names[place] ?? '',
      value: fromNanoUsd(nano),
      fill: seriesFills[place] ?? '',
    })),
    calls,
    tokens,
  }));
}

type ZonedBucket = Pick<CostSeries, 'bucket' | 'timezone'>;

/** `28 Nov 2026, 14:00`, `28 Nov 2026`, in the zone of the project. */
function nameBucket(at: string, { bucket, timezone: timeZone }: ZonedBucket): string {
  if (bucket === 'hour') return formatMoment(at, timeZone);
  const day = bucket === 'day' ? ({ day: 'numeric' } as const) : {};
  return new Date(at).toLocaleDateString(undefined, { ...day, month: 'short', year: 'numeric', timeZone });
}

/** `14:00`, `28 Nov`, `Nov 2026`: below the columns. */
export function nameTick(at: string, { bucket, timezone: timeZone }: ZonedBucket): string {
  if (bucket === 'hour') return formatHour(at, timeZone);
  const rest = bucket === 'day' ? ({ day: 'numeric' } as const) : ({ year: 'numeric' } as const);
  return new Date(at).toLocaleDateString(undefined, { ...rest, month: 'short', timeZone });
}

/** `1,203`, `1.5 M` */
export function formatCount(count: number): string {
  if (count < 100_000) return count.toLocaleString('en-US');
  const [unit, size] = count < 1e6 ? ['k', 1e3] : count < 1e9 ? ['M', 1e6] : ['G', 1e9];
  return `${(count / Number(size)).toPrecision(3).replace(/\.?0+$/, '')} ${unit}`;
}
