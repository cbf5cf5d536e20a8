/** The higher price of each class, where several sources state prices of one model. */
import { answerClasses, type StatedPeriod, type StatedRates, type TokenClass } from './prices.ts';

/** Limits that differ by less are one: one source counts from 200,000 on, another above it. */
const sameLimit = 0.01;

/** The prices of a period for questions above a length. */
export function statedAbove({ from: _, above = [], ...rates }: StatedPeriod, tokens: number): StatedRates {
  const { tokens: __, ...tier } = above.findLast((one) => one.tokens <= tokens) ?? { tokens, ...rates };
  return tier;
}

const ofAnswer: ReadonlySet<string> = new Set(answerClasses);

/** What a class costs where a source does not state it. Reads from a cache are unknown then. */
function usualRate(name: TokenClass, rates: StatedRates): number {
  if (name === 'cached_read') return 0;
  if (name === 'cached_write_1h') return rates.cached_write ?? rates.input;
  return ofAnswer.has(name) ? (rates.output ?? 0) : rates.input;
}

function highestOf(all: readonly StatedRates[]): StatedRates {
  const names = [...new Set(all.flatMap((rates) => Object.keys(rates) as TokenClass[]))];
  const of = (name: TokenClass) => Math.max(...all.map((rates) => rates[name] ?? usualRate(name, rates)));
  const highest = Object.fromEntries(names.map((name) => [name, of(name)])) as unknown as StatedRates;
  const isUsual = (name: string, rate: number) =>
    !/^(input|output)$|^cached/.test(name) && rate === usualRate(name as TokenClass, highest);
  const stated = Object.entries(highest).filter(([name, rate]) => !isUsual(name, rate));
  return Object.fromEntries(stated) as unknown as StatedRates;
}

/** Where the length of a question changes its price, in ascending order. */
export function limitsOf(periods: readonly StatedPeriod[]): readonly number[] {
  const all = periods
    .flatMap(({ above = [] }) => above.map(({ tokens }) => tokens))
    .toSorted((a, b) => a - b);
  return all.filter((limit, at) => at === 0 || limit > (all[at - 1] ?? 0) * (1 + sameLimit));
}

function highestPeriod(periods: readonly StatedPeriod[], from: string | undefined): StatedPeriod {
  const at = (tokens: number) => highestOf(periods.map((period) => statedAbove(period, tokens)));
  const above = limitsOf(periods).map((tokens) => ({ tokens, ...at(tokens * (1 + sameLimit)) }));
  return {
    ...(from === undefined ? {} : { from }),
    ...at(0),
    ...(above.length === 0 ? {} : { above }),
  };
}

function periodAt(periods: readonly StatedPeriod[], from: string): StatedPeriod {
  const found = periods.findLast((period) => (period.from ?? '') <= from);
  return (found ?? periods[0]) as StatedPeriod;
}

/** @param sources each with its periods in the order of their dates; the first period has none */
export function highestPrices(sources: readonly (readonly StatedPeriod[])[]): readonly StatedPeriod[] {
  const dates = sources.flatMap((periods) => periods.map(({ from = '' }) => from));
  return [...new Set(dates)].toSorted().map((date) => {
    const periods = sources.map((periods) => periodAt(periods, date));
    return highestPeriod(periods, date === '' ? undefined : date);
  });
}
