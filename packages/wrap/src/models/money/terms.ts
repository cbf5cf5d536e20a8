/** What a call of a model may cost, and what it did cost, by the prices of its file. */

import { addedTokens } from '@capstan/core/contracts/model-protocol';
import type { Json } from '@capstan/core/contracts/primitives';
import { mediaPartTokens } from '@capstan/core/expression/language';
import { isPlainObject } from '@capstan/core/json/values';
import { providerFailure } from '../../exchange/provider-failure.ts';
import type { WrapHost, WrapPrice } from '../../wrap-kind.ts';
import type { FilePrices } from './file-prices.ts';
import {
  type CacheRules,
  costOfUsage,
  type HighestRates,
  highestFrom,
  isFree,
  type Prices,
} from './prices.ts';
import { Usage } from './usage.ts';

export interface ModelTerms {
  /** Null: a call costs its rate. */
  readonly prices: Prices | null;
  readonly rateUsd: number;
  readonly maxOutputTokens: number;
  /** The most that the provider counts for one image. */
  readonly imageTokens: number;
  readonly cache: CacheRules;
  /** Of the prices, for a person. */
  readonly source: string;
}

/** Whether a request travels as its client wrote it. */
type RequestWay = 'native' | 'translated';

function usdPerToken(usdPerMtok: number): number {
  return Number((usdPerMtok / 1e6).toPrecision(12));
}

/** The filter `tokens` counts an image as `mediaPartTokens`; a provider that counts more makes each token more. */
function imageFactor({ imageTokens }: ModelTerms): number {
  return Math.max(1, imageTokens / mediaPartTokens);
}

/** Of a question at prices per million tokens; one that may be longer than the limit counts at the second price. */
function costOfQuestion(question: string, [usual, long]: readonly number[], limit: number): string {
  const cost = `(${question}) * ${usdPerToken(usual ?? 0)}`;
  if (long === undefined || long === usual) return cost;
  const longOnes = `([{"t": ${question}}] | where("t" > ${limit}) | map("t") | sum)`;
  return `${cost} + ${longOnes} * ${usdPerToken(long - (usual ?? 0))}`;
}

/**
 * The most that a chat may cost by its input, and how it grows to that, as expressions of Capstan. Schemas of callers count as text, since they
 * may have any keys. An answer counts at its highest price, since to measure the question once more is too much work.
 */
export function costOfChat(prices: Prices, terms: ModelTerms): WrittenCost {
  const schema = `((input.response_schema | json | tokens) + ${addedTokens.schema} ?? 0)`;
  const tools = `((input.tools | json | tokens) + ${addedTokens.tools} ?? 0)`;
  const neutral = `(input.messages | tokens) + ${schema} + ${tools}`;
  const native = 'input.most_input_tokens';
  const factor = imageFactor(terms);
  const steps = highestFrom(prices, terms.cache, Date.now());
  const limit = Math.floor((steps[1]?.above ?? 0) / factor);
  const rates = (way: RequestWay) => steps.map((step) => step[way] * factor);
  const cost = (way: RequestWay, question: string) => costOfQuestion(question, rates(way), limit);
  const isSame = String(rates('native')) === String(rates('translated'));
  const question = isSame
    ? cost('native', `${native} ?? ${neutral}`)
    : `(${cost('native', native)} ?? ${cost('translated', neutral)})`;
  const answer = `(input.max_output_tokens ?? ${terms.maxOutputTokens})`;
  const rate = usdPerToken(highestOf(prices, terms).answer);
  return {
    worstCase: `{{ (input.n ?? 1) * (${question} + ${answer} * ${rate}) }}`,
    growth: { start: `{{ (input.n ?? 1) * (${question}) }}`, perToken: `{{ ${rate} }}` },
  };
}

export function costOfTexts(prices: Prices, terms: ModelTerms): WrittenCost {
  return { worstCase: `{{ (input.texts | tokens) * ${usdPerToken(highestOf(prices, terms).translated)} }}` };
}

/** @param tokens of the question; default: any number */
function highestOf(
  prices: Prices,
  { cache }: Pick<ModelTerms, 'cache'>,
  tokens = Number.POSITIVE_INFINITY,
): HighestRates {
  const [base, long = base] = highestFrom(prices, cache, Date.now());
  return tokens > long.above ? long : base;
}

/** The cost of a call by its input, as expressions. */
type WrittenCost = Pick<WrapPrice, 'worstCase' | 'growth'>;

interface PriceRules {
  readonly write: (prices: Prices, terms: ModelTerms) => WrittenCost;
  /** Counts that no answer has. */
  readonly fixed?: Partial<Usage>;
}

const Counts = Usage.partial();

function readCounts(answer: Json): Usage | null {
  const { success, data } = Counts.safeParse(isPlainObject(answer) ? answer.usage : undefined);
  return success
    ? { ...data, input_tokens: data.input_tokens ?? null, output_tokens: data.output_tokens ?? null }
    : null;
}

export function priceOf(
  terms: ModelTerms,
  { write, fixed = {} }: PriceRules,
): { readonly price?: WrapPrice } {
  const { prices } = terms;
  if (prices === null) return {};
  return {
    price: {
      ...write(prices, terms),
      source: terms.source,
      costOf: (answer, at) => {
        const known = isPlainObject(answer) ? answer.cost_usd : undefined;
        if (typeof known === 'number') return known;
        const usage = readCounts(answer);
        return usage === null ? null : costOfUsage(prices, [{ ...usage, ...fixed }], at);
      },
    },
  };
}

/** Reports a rate that does not cover the output alone: the rest would be spent without being counted. */
export function readTerms(
  part: { readonly image_tokens?: number; readonly max_output_tokens?: number },
  { prices, source, cache }: FilePrices,
  { cost, compile }: WrapHost,
): ModelTerms {
  const { image_tokens: imageTokens = mediaPartTokens, max_output_tokens: maxOutputTokens = 0 } = part;
  const isPriced = prices !== undefined && !isFree(prices);
  const least = isPriced ? (maxOutputTokens * highestOf(prices, { cache }).answer) / 1e6 : 0;
  if (isPriced && (cost.rate_usd === 0 || cost.rate_usd < least)) {
    const output = maxOutputTokens === 0 ? '' : `, but ${maxOutputTokens} output tokens cost ${least}`;
    const message = `rate_usd is ${cost.rate_usd}${output}; it is the most that a call with prices may cost`;
    compile.refuse({ code: 'rate_too_low', pointer: '/cost', message });
  }
  return {
    prices: isPriced ? prices : null,
    rateUsd: cost.rate_usd,
    maxOutputTokens,
    imageTokens,
    cache,
    source,
  };
}

/** What a call asks of its provider. */
interface AskedTokens {
  readonly way: RequestWay;
  /** Answers; each may have its own question. */
  readonly times: number;
  /** The most that one question can count. */
  readonly countQuestion: () => number;
  /** The most that one answer can count. */
  readonly answer: number;
}

/** What could cost more than is reserved is not asked. @throws CallFailure `provider_refused` */
export function requireCovered(
  { prices, rateUsd, cache }: ModelTerms,
  { way, times, countQuestion, answer }: AskedTokens,
): void {
  if (prices === null) return;
  const question = countQuestion();
  const rates = highestOf(prices, { cache }, question);
  const most = (times * (question * rates[way] + answer * rates.answer)) / 1e6;
  if (most <= rateUsd) return;
  const sizes = `up to ${times * question} tokens of question and ${times * answer} tokens of answer`;
  const message = `${sizes} may cost ${most.toFixed(6)} USD; rate_usd is ${rateUsd}`;
  throw providerFailure('provider_refused', message, { cost_usd: 0 });
}

/** A rate without prices per token is that of one answer. @throws CallFailure `provider_refused` */
export function requireRateFor({ prices, rateUsd }: ModelTerms, answers: number): void {
  if (answers === 1 || rateUsd === 0 || prices !== null) return;
  const message = `n is ${answers}; without prices per token the rate pays for one answer`;
  throw providerFailure('provider_refused', message, { cost_usd: 0 });
}
