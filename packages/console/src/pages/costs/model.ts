/** Costs by time as columns. */
import type { CostSeries, CostSummary } from '@capstan/core/contracts/money';
import type { BarColumn } from '../../shared/bar-column.ts';
import { formatMoment, formatUsd } from '../../shared/format.ts';

/** Quiet hues that also differ in lightness; further groups are combined. */
const seriesFills = [
  'fill-accent',
  'fill-person',
  'fill-done',
  'fill-waiting',
  'fill-running',
  'fill-quiet',
] as const;
export const seriesDots = [
  'bg-accent',
  'bg-person',
  'bg-done',
  'bg-waiting',
  'bg-running',
  'bg-quiet',
] as const;

/** The savings by results of equal calls; null for none. */
export function describeSaved({ today_saved_usd }: Pick<CostSummary, 'today_saved_usd'>): string | null {
  return today_saved_usd > 0 ? `saved today ${formatUsd(today_saved_usd)}` : null;
}

export interface NamedSum {
  readonly name: string;
  readonly usd: number;
}

/** The most expensive first; the rest together. */
export function sumSeries({ series }: CostSeries): readonly NamedSum[] {
  const sums = series
    .map(({ name, points }) => ({ name, usd: points.reduce((sum, [, usd]) => sum + usd, 0) }))
    .sort((a, b) => b.usd - a.usd);
  const named = sums.slice(0, seriesFills.length - 1);
  const rest = sums.slice(seriesFills.length - 1).reduce((sum, { usd }) => sum + usd, 0);
  return rest > 0 ? [...named, { name: 'others', usd: rest }] : named;
}

export function toCostColumns(costs: CostSeries): BarColumn[] {
  const names = sumSeries(costs).map(({ name }) => name);
  const moments = [...new Set(costs.series.flatMap(({ points }) => points.map(([at]) => at)))].sort();
  return moments.map((at) => {
    const values = new Map<string, number>();
    for (const { name, points } of costs.series) {
      const usd = points.find(([moment]) => moment === at)?.[1] ?? 0;
      const key = names.includes(name) ? name : 'others';
      values.set(key, (values.get(key) ?? 0) + usd);
    }
    const parts = names.map((name, index) => ({
      name,
      value: values.get(name) ?? 0,
      fill: seriesFills[index] ?? 'fill-quiet',
    }));
    const total = parts.reduce((sum, { value }) => sum + value, 0);
    return { key: at, title: `${formatMoment(at)}: ${formatUsd(total)}`, parts };
  });
}
