/** The costs, calls and tokens of a span of days, over time and by one or two groups: as an answer, or as CSV. */

import { bucketFor, countDays, cutSpan, type DaySpan, spanOf } from '@capstan/core/calendar/days';
import type { CostGrouping, CostQuery, CostSeries, CostSeriesQuery } from '@capstan/core/contracts/money';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { formatNanoUsd, fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { ServerCtx } from '../../context.ts';
import { namesOfKeys } from '../../db/access/api-key.ts';
import type { Db } from '../../db/connect.ts';
import { type CostFilter, type CostSumRow, listCostRows } from '../../db/money/cost-series.ts';
import { type ProjectDays, readProjectDays } from '../../db/money/spending.ts';
import { boundsOfIds } from '../../parts/ids.ts';
import type { Caller } from '../access/caller.ts';
import { asText, toCsvLine } from '../csv.ts';

export interface CostDays extends ProjectDays {
  readonly span: DaySpan;
}

/** The days that a request means, in the time zone of the project. @throws AppError `not_found`, `request_invalid` */
export async function readCostDays(
  db: Db,
  projectId: string,
  { period = 'day', from, to }: CostQuery,
): Promise<CostDays> {
  const days = await readProjectDays(db, projectId);
  if (days === undefined) throw new AppError('not_found', `no project ${projectId}`);
  const { today, first } = days;
  if (from === undefined) return { ...days, span: spanOf(period, { today, first: first ?? today }) };
  if (to === undefined && from > today)
    throw refuseField('/query/from', `${from} is after today, ${today}`, 'maximum');
  return { ...days, span: { from, to: to ?? today } };
}

const mostSeries = 50;
const mostCrossed = 200;
const mostDaysByHour = 8;

interface Sums {
  readonly nano: bigint;
  readonly calls: number;
  readonly tokens: number;
}

const none: Sums = { nano: 0n, calls: 0, tokens: 0 };

function add(a: Sums, b: Sums): Sums {
  return { nano: a.nano + b.nano, calls: a.calls + b.calls, tokens: a.tokens + b.tokens };
}

function toUsd({ nano, ...counts }: Sums) {
  return { usd: fromNanoUsd(nano), ...counts };
}

interface Group {
  readonly name: string;
  readonly other: string;
  readonly isRest: boolean;
  /** By bucket. */
  readonly points: Map<number, Sums>;
}

function totalOf({ points }: Pick<Group, 'points'>): Sums {
  return [...points.values()].reduce(add, none);
}

function put(group: Group, bucket: number, sums: Sums): void {
  group.points.set(bucket, add(group.points.get(bucket) ?? none, sums));
}

function byCost(a: Group, b: Group): number {
  const [one, other] = [totalOf(a), totalOf(b)];
  if (one.nano !== other.nano) return one.nano < other.nano ? 1 : -1;
  return other.calls - one.calls;
}

function groupRows(rows: readonly CostSumRow[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const { name, other, bucket, nano, calls, tokens } of rows) {
    const key = JSON.stringify([name, other]);
    const group = groups.get(key) ?? { name, other, isRest: false, points: new Map() };
    groups.set(key, group);
    put(group, bucket, { nano: BigInt(nano), calls, tokens: Number(tokens) });
  }
  return [...groups.values()].sort(byCost);
}

/** The most expensive groups, and one of all others. */
function limitGroups(groups: readonly Group[], most: number): readonly Group[] {
  if (groups.length <= most) return groups;
  const rest: Group = { name: 'others', other: '', isRest: true, points: new Map() };
  for (const { points } of groups.slice(most)) for (const [bucket, sums] of points) put(rest, bucket, sums);
  return [...groups.slice(0, most), rest];
}

type Titles = ReadonlyMap<string, string>;

function titlesOf(
  name: string,
  { by, titles }: { by: CostGrouping | undefined; titles: Titles },
): string | undefined {
  return by === 'key' ? titles.get(name) : undefined;
}

function toSeries(
  { name, other, isRest, points }: Group,
  { by, and }: Pick<CostSeriesQuery, 'by' | 'and'>,
  { starts, titles }: { readonly starts: readonly string[]; readonly titles: Titles },
): CostSeries['series'][number] {
  const title = isRest ? undefined : titlesOf(name, { by, titles });
  const andTitle = isRest ? undefined : titlesOf(other, { by: and, titles });
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(and === undefined || isRest ? {} : { and: other }),
    ...(andTitle === undefined ? {} : { and_title: andTitle }),
    ...(isRest ? { is_rest: true } : {}),
    ...toUsd(totalOf({ points })),
    points: [...points]
      .sort(([a], [b]) => a - b)
      .map(([bucket, sums]) => [starts[bucket - 1] ?? '', fromNanoUsd(sums.nano), sums.calls, sums.tokens]),
  };
}

function chooseBucket(span: DaySpan, bucket: CostSeriesQuery['bucket']): CostSeries['bucket'] {
  const days = countDays(span);
  if (bucket !== 'hour' || days <= mostDaysByHour) return bucket ?? bucketFor(span);
  throw refuseField('/query/bucket', `hours show up to ${mostDaysByHour} days, not ${days}`, 'maximum');
}

/** Names of the keys among the groups. */
async function readTitles(db: Db, projectId: string, ids: readonly string[]): Promise<Titles> {
  return ids.length === 0 ? new Map() : namesOfKeys(db, projectId, ids);
}

/** Reads the calls of a project over time, as one series for each group. @throws AppError `request_invalid` */
export async function readCostSeries(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  { project_id }: Caller,
  query: CostSeriesQuery,
): Promise<CostSeries> {
  const { by, and, capability, model, pipeline, endpoint, key, user, label } = query;
  const filter: CostFilter = { capability, model, pipeline, endpoint, key, user, label };
  const { span, timezone, daily_limit_nano } = await readCostDays(historyDb, project_id, query);
  const bucket = chooseBucket(span, query.bucket);
  const cut = cutSpan(span, { bucket, timezone });
  const [starts, until] = [cut.starts.map((at) => new Date(at)), new Date(cut.until)];
  const ids = boundsOfIds('attempt', starts[0] ?? until, until);
  const rows = await listCostRows(historyDb, project_id, { starts, until, ids, by, and, filter });
  const groups = groupRows(rows);
  const shown = limitGroups(groups, and === undefined ? mostSeries : mostCrossed);
  const keys = [
    ...(by === 'key' ? shown.map(({ name }) => name) : []),
    ...(and === 'key' ? shown.map(({ other }) => other) : []),
  ];
  const titles = await readTitles(historyDb, project_id, keys);
  const at = starts.map((start) => start.toISOString());
  return {
    ...span,
    timezone,
    bucket,
    starts: at,
    until: until.toISOString(),
    ...toUsd(groups.map(totalOf).reduce(add, none)),
    series: shown.map((group) => toSeries(group, { by, and }, { starts: at, titles })),
    daily_limit_usd: fromNanoUsd(BigInt(daily_limit_nano)),
  };
}

/** A line for each bucket and group, oldest first; a group is an id, with its name beside it where it is a key. */
export function* writeCostCsv(
  { starts, until, series }: CostSeries,
  { by, and }: Pick<CostSeriesQuery, 'by' | 'and'>,
): Generator<string, void, undefined> {
  const second = and === undefined ? [] : [and, ...(and === 'key' ? ['key_name'] : [])];
  const groups = [by, ...(by === 'key' ? ['key_name'] : []), ...second];
  yield toCsvLine(['from', 'until', ...groups.map(asText), 'usd', 'calls', 'tokens']);
  for (const [index, from] of starts.entries()) {
    for (const one of series) {
      const point = one.points.find(([at]) => at === from);
      if (point === undefined) continue;
      const [, usd, calls, tokens] = point;
      const named = [one.name, ...(by === 'key' ? [one.title ?? ''] : [])];
      const crossed =
        and === undefined ? [] : [one.and ?? '', ...(and === 'key' ? [one.and_title ?? ''] : [])];
      const names = [...named, ...crossed].map(asText);
      const sums = [formatNanoUsd(toNanoUsd(usd)), String(calls), String(tokens)];
      yield toCsvLine([from, starts[index + 1] ?? until, ...names, ...sums]);
    }
  }
}
