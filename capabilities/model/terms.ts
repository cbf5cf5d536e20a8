/** The terms of a call of a model: how long it may take, what it may cost, what it did cost. */
import type { CostModel } from '@capstan/core/contracts/capability';
import { mediaPartTokens } from '@capstan/core/expression/language';
import type { ModelSettings } from './configuration.ts';
import { explainProviderError, modelFailure } from './faults.ts';

function pricesOf(settings: ModelSettings) {
  const { MODEL_USD_PER_MTOK_IN: input, MODEL_USD_PER_MTOK_OUT: output } = settings;
  return input === undefined || output === undefined || input + output === 0 ? null : { input, output };
}

/** Tokens of what the model, or its provider, adds to a question with tools or with a schema. */
const added = { schema: 40, tools: 600 } as const;

/**
 * The most that a call may cost by its input, as an expression of Capstan; none without prices. The filter `tokens`
 * counts an image as `mediaPartTokens`, so a provider that counts more raises the price of a token. Schemas of callers
 * count as text, since they may have any keys.
 */
function worstCaseOf(settings: ModelSettings): Pick<CostModel, 'worst_case'> {
  const prices = pricesOf(settings);
  if (prices === null) return {};
  const { MODEL_IMAGE_TOKENS, MODEL_MAX_OUTPUT_TOKENS, MODEL_CAPABILITY } = settings;
  const perToken = usdPerToken(prices.input * Math.max(1, MODEL_IMAGE_TOKENS / mediaPartTokens));
  if (MODEL_CAPABILITY.startsWith('embed.')) {
    return { worst_case: `{{ (input.texts | tokens) * ${perToken} }}` };
  }
  const schema = `((input.response_schema | json | tokens) + ${added.schema} ?? 0)`;
  const tools = `((input.tools | json | tokens) + ${added.tools} ?? 0)`;
  const question = `((input.messages | tokens) + ${schema} + ${tools}) * ${perToken}`;
  const answer = `(input.max_output_tokens ?? ${MODEL_MAX_OUTPUT_TOKENS}) * ${usdPerToken(prices.output)}`;
  return { worst_case: `{{ (input.n ?? 1) * (${question} + ${answer}) }}` };
}

function usdPerToken(usdPerMtok: number): number {
  return Number((usdPerMtok / 1e6).toPrecision(12));
}

/** What every capability of this folder declares. */
export function declareTerms(settings: ModelSettings) {
  const { MODEL_CAPABILITY: name, MODEL_RATE_USD: rate_usd, MODEL_PROVIDER } = settings;
  const type = rate_usd === 0 ? 'free' : 'per_call';
  const cost_model: CostModel = { type, rate_usd, ...worstCaseOf(settings) };
  return {
    name,
    version: '1.0.0',
    cost_model,
    settle: pricesOf(settings) === null ? 'computed' : 'reported',
    tags: ['model', MODEL_PROVIDER],
    max_concurrency: settings.MODEL_MAX_CONCURRENCY,
  } as const;
}

/** @throws CallFailure when the caller's deadline has passed */
function timeLimit({ MODEL_TIMEOUT_MS }: ModelSettings, deadline: Date | undefined): number {
  if (deadline === undefined) return MODEL_TIMEOUT_MS;
  const leftMs = deadline.getTime() - Date.now();
  if (leftMs > 0) return Math.min(MODEL_TIMEOUT_MS, leftMs);
  throw modelFailure('model_unavailable', 'the deadline of the call has passed');
}

/** Takes the provider's key out of a text. */
export function hideKey({ MODEL_API_KEY: key }: ModelSettings): (text: string) => string {
  return (text) => (key === undefined ? text : text.replaceAll(key, '[key]'));
}

/**
 * Asks the provider within the time that the call has. The signal aborts whenever the question has failed, so that no
 * connection stays open.
 * @throws CallFailure whose code shows who can help
 */
export async function askInTime<Answer>(
  settings: ModelSettings,
  { signal, deadline }: { readonly signal: AbortSignal; readonly deadline?: Date | undefined },
  ask: (stop: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const limitMs = timeLimit(settings, deadline);
  const stop = new AbortController();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    stop.abort();
  }, limitMs);
  const leave = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', leave);
  try {
    signal.throwIfAborted();
    return await ask(stop.signal);
  } catch (error) {
    stop.abort();
    signal.throwIfAborted();
    if (isLate) throw modelFailure('model_unavailable', `no whole answer within ${limitMs} ms`);
    throw explainProviderError(error, hideKey(settings));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

/**
 * What could cost more than is reserved is not asked.
 * @param tokens the most that the question can count
 * @throws CallFailure `model_rejected`
 */
export function requireCovered(settings: ModelSettings, tokens: number, maxOutputTokens: number): void {
  const prices = pricesOf(settings);
  if (prices === null) return;
  const most = (tokens * prices.input + maxOutputTokens * prices.output) / 1e6;
  if (most <= settings.MODEL_RATE_USD) return;
  const sizes = `up to ${tokens} tokens of question and ${maxOutputTokens} tokens of answer`;
  const limit = `MODEL_RATE_USD is ${settings.MODEL_RATE_USD}`;
  throw modelFailure('model_rejected', `${sizes} may cost ${most.toFixed(6)} USD; ${limit}`);
}

/** A rate without prices per token is that of one answer. @throws CallFailure `model_rejected` */
export function requireRateFor(settings: ModelSettings, answers: number): void {
  if (answers === 1 || settings.MODEL_RATE_USD === 0 || pricesOf(settings) !== null) return;
  const needed = 'MODEL_USD_PER_MTOK_IN and MODEL_USD_PER_MTOK_OUT';
  throw modelFailure('model_rejected', `n is ${answers}; without ${needed} the rate pays for one answer`);
}

export interface CountedTokens {
  /** Null when the provider does not report it. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/**
 * The field `cost_usd` of a result, USD; absent when the cost is unknown. Tokens from a cache count in full.
 * @param log receives a cost above the rate
 */
export function costField(
  settings: ModelSettings,
  { inputTokens, outputTokens }: CountedTokens,
  log: (line: string) => void,
): { readonly cost_usd?: number } {
  const prices = pricesOf(settings);
  if (prices === null || inputTokens === null || outputTokens === null) return {};
  const cost_usd = Number(((inputTokens * prices.input + outputTokens * prices.output) / 1e6).toFixed(12));
  const { MODEL_RATE_USD: rate } = settings;
  if (cost_usd > rate) log(`a call cost ${cost_usd} USD; only MODEL_RATE_USD, ${rate}, is counted`);
  return { cost_usd };
}
