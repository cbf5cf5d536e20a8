/** What a project's calls have cost in time, a series for each of what they are told apart by. */
import type { CostSeries, CostSeriesQuery } from '../../contracts/money.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { type CostPointRow, listCostPoints, readCostSpan } from '../../db/money/cost-series.ts';
import { AppError } from '../../errors/app-error.ts';

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

export async function readCostSeries(db: Db, projectId: string, query: CostSeriesQuery): Promise<CostSeries> {
  const row = await readCostSpan(db, projectId, query.period);
  if (row === undefined) throw new AppError('not_found', `no project ${projectId}`);
  const { timezone, today, first_day } = row;
  const from = first_day ?? today;
  const points = await listCostPoints(db, projectId, {
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
