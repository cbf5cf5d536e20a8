/** What a call of a model may cost, and what it did cost, by the prices of its file. */

import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { mediaPartTokens } from '@capstan/core/expression/language';
import { isPlainObject } from '@capstan/core/json/values';
import { z } from 'zod';
import { providerFailure } from '../exchange/provider-failure.ts';
import type { WrapHost, WrapPrice } from '../wrap-kind.ts';

const UsdPerMtok = z.number().min(0).max(10_000);

/** USD per million tokens. */
export const Prices = z.strictObject({ input: UsdPerMtok, output: UsdPerMtok });
export type Prices = z.infer<typeof Prices>;

export interface ModelTerms {
  /** Null: a call costs its rate. */
  readonly prices: Prices | null;
  readonly rateUsd: number;
  readonly maxOutputTokens: number;
  /** The most that the provider counts for one image. */
  readonly imageTokens: number;
}

function usdPerToken(usdPerMtok: number): number {
  return Number((usdPerMtok / 1e6).toPrecision(12));
}

/** Tokens of what the model, or its provider, adds to a question with tools or with a schema. */
const added = { schema: 40, tools: 600 } as const;
export const addedTokens = added.schema + added.tools;

/**
 * The most that a chat may cost by its input, as an expression of Capstan. The filter `tokens` counts an image as
 * `mediaPartTokens`, so a provider that counts more raises the price of a token. Schemas of callers count as text, since
 * they may have any keys.
 */
export function worstCaseOfChat(prices: Prices, { imageTokens, maxOutputTokens }: ModelTerms): string {
  const perToken = usdPerToken(prices.input * Math.max(1, imageTokens / mediaPartTokens));
  const schema = `((input.response_schema | json | tokens) + ${added.schema} ?? 0)`;
  const tools = `((input.tools | json | tokens) + ${added.tools} ?? 0)`;
  const neutral = `(input.messages | tokens) + ${schema} + ${tools}`;
  const question = `(input.most_input_tokens + ${addedTokens} ?? ${neutral}) * ${perToken}`;
  const answer = `(input.max_output_tokens ?? ${maxOutputTokens}) * ${usdPerToken(prices.output)}`;
  return `{{ (input.n ?? 1) * (${question} + ${answer}) }}`;
}

export function worstCaseOfTexts(prices: Prices): string {
  return `{{ (input.texts | tokens) * ${usdPerToken(prices.input)} }}`;
}

/** USD of tokens; null when one of the counts is unknown. Tokens from a cache count in full. */
function costOf(prices: Prices, { input_tokens: input, output_tokens: output }: JsonObject): number | null {
  if (typeof input !== 'number' || typeof output !== 'number') return null;
  return Number(((input * prices.input + output * prices.output) / 1e6).toFixed(12));
}

interface PriceRules {
  /** Of a call, as an expression. */
  readonly worstCase: (prices: Prices) => string;
  /** Counts that no answer has. */
  readonly fixed?: JsonObject;
}

export function priceOf(
  { prices }: ModelTerms,
  { worstCase, fixed = {} }: PriceRules,
): { readonly price?: WrapPrice } {
  if (prices === null) return {};
  const usageOf = (answer: Json): Json | undefined => (isPlainObject(answer) ? answer.usage : undefined);
  return {
    price: {
      worstCase: worstCase(prices),
      costOf: (answer) => {
        const usage = usageOf(answer);
        return isPlainObject(usage) ? costOf(prices, { ...usage, ...fixed }) : null;
      },
    },
  };
}

/** Reports a rate that does not cover the output alone: the rest would be spent without being counted. */
export function readTerms(
  part: {
    readonly prices?: Prices | undefined;
    readonly image_tokens?: number;
    readonly max_output_tokens?: number;
  },
  { cost, compile }: WrapHost,
): ModelTerms {
  const {
    prices,
    image_tokens: imageTokens = mediaPartTokens,
    max_output_tokens: maxOutputTokens = 0,
  } = part;
  const isPriced = prices !== undefined && prices.input + prices.output > 0;
  const least = isPriced ? (maxOutputTokens * prices.output) / 1e6 : 0;
  if (isPriced && (cost.rate_usd === 0 || cost.rate_usd < least)) {
    const output = maxOutputTokens === 0 ? '' : `, but ${maxOutputTokens} output tokens cost ${least}`;
    const message = `rate_usd is ${cost.rate_usd}${output}; it is the most that a call with prices may cost`;
    compile.refuse({ code: 'rate_too_low', pointer: '/cost', message });
  }
  return { prices: isPriced ? prices : null, rateUsd: cost.rate_usd, maxOutputTokens, imageTokens };
}

/**
 * What could cost more than is reserved is not asked.
 * @param countTokens the most that the question can count
 * @throws CallFailure `provider_refused`
 */
export function requireCovered(
  { prices, rateUsd }: ModelTerms,
  countTokens: () => number,
  maxOutputTokens: number,
): void {
  if (prices === null) return;
  const tokens = countTokens();
  const most = (tokens * prices.input + maxOutputTokens * prices.output) / 1e6;
  if (most <= rateUsd) return;
  const sizes = `up to ${tokens} tokens of question and ${maxOutputTokens} tokens of answer`;
  const message = `${sizes} may cost ${most.toFixed(6)} USD; rate_usd is ${rateUsd}`;
  throw providerFailure('provider_refused', message, { cost_usd: 0 });
}

/** A rate without prices per token is that of one answer. @throws CallFailure `provider_refused` */
export function requireRateFor({ prices, rateUsd }: ModelTerms, answers: number): void {
  if (answers === 1 || rateUsd === 0 || prices !== null) return;
  const message = `n is ${answers}; without prices per token the rate pays for one answer`;
  throw providerFailure('provider_refused', message, { cost_usd: 0 });
}
