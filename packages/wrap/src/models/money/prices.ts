/**
 * Prices of tokens by their class, by the length of the question and by date; and what the tokens of an answer cost at
 * them. Amounts are whole numbers of 1e-15 USD, and rounded once, up to a nano-USD.
 */
import { fromNanoUsd, scaleUp } from '@capstan/core/money/nano-usd';
import { z } from 'zod';
import type { Usage } from './usage.ts';

const UsdPerMtok = z.number().min(0).max(10_000);

/** Classes of the tokens of a question, the most expensive first as a rule: a token that is in two of them counts in the first. */
export const questionClasses = [
  'cached_write_1h',
  'cached_write',
  'input_audio',
  'input_image',
  'cached_read',
  'input',
] as const;

/** Classes of the tokens of an answer, in the same way. */
export const answerClasses = ['output_audio', 'output_image', 'reasoning', 'output'] as const;

export type TokenClass = (typeof questionClasses)[number] | (typeof answerClasses)[number];

const optionalRates = {
  cached_read: UsdPerMtok.optional(),
  cached_write: UsdPerMtok.optional(),
  cached_write_1h: UsdPerMtok.optional(),
  reasoning: UsdPerMtok.optional(),
  input_image: UsdPerMtok.optional(),
  input_audio: UsdPerMtok.optional(),
  output_image: UsdPerMtok.optional(),
  output_audio: UsdPerMtok.optional(),
} as const;

const ofChat = { input: UsdPerMtok, output: UsdPerMtok, ...optionalRates } as const;
const ofTexts = { input: UsdPerMtok } as const;

/** A date, or a moment with its zone. */
const From = z.union([z.iso.date(), z.iso.datetime({ offset: true })], {
  error: 'expected a date, such as 2026-12-01, or a moment, such as 2026-12-01T08:00:00Z',
});

function listed<Shape extends z.ZodRawShape>(rates: Shape) {
  const tier = z.strictObject({ tokens: z.number().int().min(1), ...rates });
  const one = z.strictObject({ ...rates, above: z.array(tier).min(1).max(8).optional() });
  return z.union([
    one,
    z
      .array(one.extend({ from: From.optional() }))
      .min(1)
      .max(50),
  ]);
}

/** USD per million tokens: of one time, or of several, each with the date from which it holds. */
export const StatedPrices = listed(ofChat);
export const StatedTextPrices = listed(ofTexts);

/** The prices that a file or a price book states: those that are missing follow from `input` and `output`. */
export type StatedRates = Partial<Readonly<Record<TokenClass, number | undefined>>> & {
  readonly input: number;
};

export interface StatedPeriod extends StatedRates {
  readonly from?: string | undefined;
  readonly above?: readonly (StatedRates & { readonly tokens: number })[] | undefined;
}

export type TokenRates = Readonly<Record<TokenClass, number>>;

interface PriceTier {
  /** It holds for questions of more tokens. */
  readonly above: number;
  readonly rates: TokenRates;
}

interface PricePeriod {
  /** Unix ms. */
  readonly from: number;
  /** In ascending order; the first one is above -1. */
  readonly tiers: readonly PriceTier[];
}

/** In ascending order; the first one holds since ever. */
export type Prices = readonly PricePeriod[];

/** How a provider writes to its cache. */
export interface CacheRules {
  /** What it charges where a file does not state it, as a multiple of `input`. */
  readonly write: number;
  readonly write1h: number;
  /** Classes that a translated request does not ask for. */
  readonly unasked: readonly TokenClass[];
}

/** It writes by itself, if at all. */
export const ownCache: CacheRules = { write: 1, write1h: 1, unasked: ['cached_write_1h'] };
/** Anthropic writes where a request asks for it. */
export const askedCache: CacheRules = {
  write: 1.25,
  write1h: 2,
  unasked: ['cached_write', 'cached_write_1h'],
};

function times(rate: number, factor: number): number {
  return Number((rate * factor).toPrecision(12));
}

/** Reads from a cache cost as much as other tokens unless their price is stated. */
function completeRates(stated: StatedRates, cache: CacheRules): TokenRates {
  const { input, output = 0 } = stated;
  const { cached_write = times(input, cache.write) } = stated;
  return {
    input,
    output,
    cached_read: stated.cached_read ?? input,
    cached_write,
    cached_write_1h: stated.cached_write_1h ?? Math.max(cached_write, times(input, cache.write1h)),
    input_image: stated.input_image ?? input,
    input_audio: stated.input_audio ?? input,
    reasoning: stated.reasoning ?? output,
    output_image: stated.output_image ?? output,
    output_audio: stated.output_audio ?? output,
  };
}

function toPeriod({ from, above = [], ...rates }: StatedPeriod, cache: CacheRules): PricePeriod {
  const tiers = above.map(({ tokens, ...higher }) => ({
    above: tokens,
    rates: completeRates(higher, cache),
  }));
  return {
    from: from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from),
    tiers: [{ above: -1, rates: completeRates(rates, cache) }, ...tiers].toSorted(
      (a, b) => a.above - b.above,
    ),
  };
}

/** Calls before the first date cost what calls on it cost. */
export function toPrices(stated: StatedPeriod | readonly StatedPeriod[], cache: CacheRules): Prices {
  const all: readonly StatedPeriod[] = Array.isArray(stated) ? stated : [stated as StatedPeriod];
  const periods = all.map((one) => toPeriod(one, cache)).toSorted((a, b) => a.from - b.from);
  return periods.map((period, at) => (at === 0 ? { ...period, from: Number.NEGATIVE_INFINITY } : period));
}

export function isFree(prices: Prices): boolean {
  return prices.every(({ tiers }) =>
    tiers.every(({ rates }) => Object.values(rates).every((rate) => rate === 0)),
  );
}

/** The prices for a question of so many tokens at a time (Unix ms). */
export function ratesAt(prices: Prices, inputTokens: number, at: number): TokenRates {
  const { tiers } = prices.findLast(({ from }) => from <= at) as PricePeriod;
  return (tiers.findLast(({ above }) => inputTokens > above) as PriceTier).rates;
}

type TokenCounts = Readonly<Record<TokenClass, number>>;

/** Takes each class out of what is left of the total; the last class gets the rest. */
function share<Class extends TokenClass>(
  total: number,
  classes: readonly Class[],
  counts: Partial<Record<TokenClass, number>>,
): [Class, number][] {
  let left = total;
  return classes.map((name, at) => {
    const taken = at === classes.length - 1 ? left : Math.min(left, counts[name] ?? 0);
    left -= taken;
    return [name, taken];
  });
}

/** Every token of the usage in one class; null when a total is unknown. */
export function splitUsage(usage: Usage): TokenCounts | null {
  const { input_tokens: question, output_tokens: answer, cached_write_1h_tokens: hour = 0 } = usage;
  if (question === null || answer === null) return null;
  const asked = {
    cached_write_1h: hour,
    cached_write: Math.max(0, (usage.cached_write_tokens ?? 0) - hour),
    input_audio: usage.input_audio_tokens ?? 0,
    input_image: usage.input_image_tokens ?? 0,
    cached_read: usage.cached_read_tokens ?? 0,
  };
  const written = {
    output_audio: usage.output_audio_tokens ?? 0,
    output_image: usage.output_image_tokens ?? 0,
    reasoning: usage.reasoning_tokens ?? 0,
  };
  return Object.fromEntries([
    ...share(question, questionClasses, asked),
    ...share(answer, answerClasses, written),
  ]) as TokenCounts;
}

/** A price per million tokens with nine decimals is as many 1e-15 USD per token. */
const decimals = 9;
const femtoPerNano = 1_000_000n;

/** Of one request to the provider, in 1e-15 USD; null when its tokens are unknown. */
function femtoCost(prices: Prices, usage: Usage, at: number): bigint | null {
  const counts = splitUsage(usage);
  if (counts === null) return null;
  const rates = ratesAt(prices, usage.input_tokens ?? 0, at);
  const amounts = Object.entries(counts) as [TokenClass, number][];
  return amounts.reduce((sum, [name, count]) => sum + BigInt(count) * scaleUp(rates[name], decimals), 0n);
}

/**
 * USD of requests to the provider that began at a time (Unix ms); null when the tokens of one are unknown. Each has a
 * length of its own, which decides its tier.
 */
export function costOfUsage(prices: Prices, requests: readonly Usage[], at: number): number | null {
  let sum = 0n;
  for (const usage of requests) {
    const cost = femtoCost(prices, usage, at);
    if (cost === null) return null;
    sum += cost;
  }
  return fromNanoUsd((sum + femtoPerNano - 1n) / femtoPerNano);
}

/** The highest prices that a call can meet, USD per million tokens. */
export interface HighestRates {
  /** Of a question in the protocol of its client, who may ask for any kind of cache. */
  readonly native: number;
  readonly translated: number;
  readonly answer: number;
}

interface HighestTier extends HighestRates {
  readonly above: number;
}

/**
 * By the length of a question, from a time on (Unix ms): none is below the one before. There
 * are two steps at most: the second holds for everything above the first limit.
 */
export function highestFrom(
  prices: Prices,
  { unasked }: Pick<CacheRules, 'unasked'>,
  at: number,
): readonly [HighestTier, ...HighestTier[]] {
  const highest = (of: readonly PriceTier[]): HighestRates => {
    const most = (classes: readonly TokenClass[]) =>
      Math.max(...of.flatMap(({ rates }) => classes.map((name) => rates[name])));
    return {
      native: most(questionClasses),
      translated: most(questionClasses.filter((name) => !unasked.includes(name))),
      answer: most(answerClasses),
    };
  };
  const current = prices.findLastIndex(({ from }) => from <= at);
  const coming = prices.slice(Math.max(0, current));
  const tiers = coming.flatMap((period) => period.tiers);
  const limits = tiers.map(({ above }) => above).filter((above) => above >= 0);
  const base = { above: -1, ...highest(tiers.filter(({ above }) => above < 0)) };
  if (limits.length === 0) return [base];
  return [base, { above: Math.min(...limits), ...highest(tiers) }];
}
