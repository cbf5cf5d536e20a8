/** Prices of the two catalogues, in the form in which files state them: USD per million tokens. */
import type { StatedPeriod, StatedRates, TokenClass } from '../../packages/wrap/src/models/money/prices.ts';
import type { FirstModel, FirstRates, SecondEntry } from './catalogues.ts';

type NamedRates = Partial<Record<TokenClass, number>>;

/** Names of the first catalogue. Cached sound counts as sound. */
const firstNames = {
  input_mtok: 'input',
  cache_read_mtok: 'cached_read',
  cache_write_mtok: 'cached_write',
  cache_write_1h_mtok: 'cached_write_1h',
  input_image_mtok: 'input_image',
  input_audio_mtok: 'input_audio',
  output_mtok: 'output',
  output_reasoning_mtok: 'reasoning',
  output_image_mtok: 'output_image',
  output_audio_mtok: 'output_audio',
} as const satisfies Record<string, TokenClass>;

const secondNames = {
  input_cost_per_token: 'input',
  cache_read_input_token_cost: 'cached_read',
  cache_creation_input_token_cost: 'cached_write',
  cache_creation_input_token_cost_above_1hr: 'cached_write_1h',
  input_cost_per_image_token: 'input_image',
  input_cost_per_audio_token: 'input_audio',
  output_cost_per_token: 'output',
  output_cost_per_reasoning_token: 'reasoning',
  output_cost_per_image_token: 'output_image',
  output_cost_per_audio_token: 'output_audio',
} as const satisfies Record<string, TokenClass>;

/** Prices of a call, or of what models of this program never give: such a model would cost more than its tokens. */
const unread = ['requests_kcount', 'output_citation_mtok'];

/** A catalogue writes 0 where it knows no price, or where a class does not exist. */
function withoutZeros(rates: NamedRates): StatedRates | null {
  const { input = 0 } = rates;
  if (input === 0) return null;
  const named = Object.entries(rates).filter(([, rate]) => rate > 0);
  return { ...Object.fromEntries(named), input };
}

function toPeriod(rates: StatedRates | null, above: readonly (StatedRates & { tokens: number })[]) {
  if (rates === null) return null;
  return above.length === 0 ? rates : { ...rates, above };
}

/** @param tokens the length of a question */
function firstRatesAt(prices: FirstRates, tokens: number): StatedRates | null {
  const rates: NamedRates = {};
  for (const [name, one] of Object.entries(firstNames)) {
    const price = prices[name];
    if (price === undefined) continue;
    rates[one] =
      typeof price === 'number'
        ? price
        : (price.tiers.findLast(({ start }) => tokens > start)?.price ?? price.base);
  }
  return withoutZeros(rates);
}

function readFirstRates(prices: FirstRates): StatedPeriod | null {
  if (unread.some((name) => prices[name] !== undefined)) return null;
  const starts = Object.values(prices).flatMap((price) =>
    typeof price === 'object' ? price.tiers.map(({ start }) => start) : [],
  );
  const above = [...new Set(starts)]
    .toSorted((a, b) => a - b)
    .flatMap((tokens) => {
      const rates = firstRatesAt(prices, tokens + 1);
      return rates === null ? [] : [{ tokens, ...rates }];
    });
  return toPeriod(firstRatesAt(prices, 0), above);
}

export interface ReadPrices {
  readonly periods: readonly StatedPeriod[];
  /** Prices of other times of the day. */
  readonly otherTimes: readonly StatedPeriod[];
}

/** Those that hold on a date, and later ones; null: its prices cannot be read. */
export function readFirst({ prices }: FirstModel, date: string): ReadPrices | null {
  const all = Array.isArray(prices) ? prices : [{ prices }];
  const periods: StatedPeriod[] = [];
  const otherTimes: StatedPeriod[] = [];
  for (const { constraint, prices: stated } of all) {
    const period = readFirstRates(stated);
    if (period === null) return null;
    if (constraint?.type === 'time_of_date') otherTimes.push(period);
    else periods.push({ from: constraint?.start_date ?? '0000-01-01', ...period });
  }
  periods.sort((a, b) => String(a.from).localeCompare(String(b.from)));
  const current = periods.findLastIndex(({ from = '' }) => from <= date);
  const [now, ...later] = periods.slice(Math.max(0, current));
  if (now === undefined) return null;
  const { from: _, ...undated } = now;
  return { periods: [undated, ...later], otherTimes };
}

/** Null: it has no price per token. */
export function readSecond(entry: SecondEntry): StatedPeriod | null {
  const levels = new Map<number, NamedRates>([[0, {}]]);
  for (const [field, value] of Object.entries(entry)) {
    const [, name = field, thousands] = /^(.*?)(?:_above_(\d+)k_tokens)?$/.exec(field) ?? [];
    const one = Object.hasOwn(secondNames, name) ? secondNames[name as keyof typeof secondNames] : undefined;
    if (one === undefined || typeof value !== 'number') continue;
    const tokens = Number(thousands ?? 0) * 1_000;
    const level = levels.get(tokens) ?? {};
    level[one] = Number((value * 1e6).toPrecision(10));
    levels.set(tokens, level);
  }
  const base = levels.get(0) ?? {};
  const above = [...levels].filter(([tokens]) => tokens > 0).toSorted(([a], [b]) => a - b);
  const tiers = above.flatMap(([tokens, level]) => {
    const rates = withoutZeros({ ...base, ...level });
    return rates === null ? [] : [{ tokens, ...rates }];
  });
  return toPeriod(withoutZeros(base), tiers);
}
