/**
 * One call of `model.…` through a protocol of a provider: stateless, one question for each answer, never repeated, money
 * as the provider counts it. How a provider is reached is exchange.ts, how it speaks is a `ModelProtocol`.
 */
import { setMaxListeners } from 'node:events';
import { CallFailure, isCallFailure } from '@capstan/capability/call-failure';
import type { Schema } from '@capstan/capability/schema';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { readEvents, unexpectedAnswer } from '../exchange/event-stream.ts';
import { openExchange } from '../exchange/exchange.ts';
import { providerFailure } from '../exchange/provider-failure.ts';
import type { PreparedKind, WrapHost, WrappedCall } from '../wrap-kind.ts';
import {
  type AnswerChoice,
  askAgain,
  isOfSystem,
  type ModelInput,
  type ModelOutput,
  mostTokens,
  systemOf,
} from './conversation.ts';
import { createFenceFilter, createJsonReader, type JsonReader, type Spent } from './json-answer.ts';
import { createModelAnswer, type ModelAnswer } from './model-answer.ts';
import { ChatInput, ChatOutput, isNativeInput, ThinkingChatInput } from './model-forms.ts';
import { type ChatModelPart, chooseEffort } from './model-part.ts';
import { readFilePrices } from './money/file-prices.ts';
import { type CacheRules, costOfUsage } from './money/prices.ts';
import {
  costOfChat,
  type ModelTerms,
  priceOf,
  readTerms,
  requireCovered,
  requireRateFor,
} from './money/terms.ts';
import { sumUsage } from './money/usage.ts';
import { type NativeProtocols, performNative } from './native/call.ts';
import { type ModelProtocol, parseObject, type Question, usageOfRefusal, withSettings } from './protocol.ts';
import { createProvider, type Provider } from './provider.ts';

interface Chat {
  readonly part: ChatModelPart;
  readonly provider: Provider;
  readonly protocol: ModelProtocol;
  readonly terms: ModelTerms;
}

function toQuestion({ part }: Chat, input: ModelInput): Question {
  const { max_output_tokens: limit, structured_output: way } = part;
  const { reasoning_effort: asked } = input;
  const schema = input.response_schema as JsonObject | undefined;
  const system = systemOf(input.messages);
  if (schema !== undefined && way !== 'json_schema') {
    system.push(`Answer with JSON only, which matches this JSON Schema:\n${JSON.stringify(schema)}`);
  }
  return {
    system: system.join('\n\n'),
    messages: input.messages.filter((message) => !isOfSystem(message)),
    tools: input.tools ?? [],
    toolChoice: input.tool_choice,
    schema: way === 'prompt' ? undefined : schema,
    maxOutputTokens: Math.min(input.max_output_tokens ?? limit, limit),
    effort: asked === undefined ? undefined : chooseEffort(asked, part),
    input,
  };
}

/** The most tokens that the question can count. */
function countTokens({ imageTokens }: ModelTerms, input: ModelInput): number {
  const others = JSON.stringify([input.response_schema ?? null, input.tools ?? null]);
  return mostTokens(input.messages, imageTokens) + Buffer.byteLength(others);
}

interface AskedQuestion {
  readonly question: Question;
  readonly signal: AbortSignal;
  readonly tell: (delta: JsonObject) => void;
}

/** @throws CallFailure */
async function ask(
  { part, provider, protocol }: Chat,
  { question, signal, tell }: AskedQuestion,
): Promise<ModelAnswer> {
  const { hide } = provider;
  const filter = question.input.response_schema === undefined ? undefined : createFenceFilter();
  const growing = createModelAnswer({ askedModel: part.model, tell, hide, filter });
  const reader = protocol.createReader(growing);
  const body = withSettings(protocol.toBody(question), part.settings);
  const answer = await openExchange(
    provider.send(protocol.path, { body, signal, usageOf: usageOfRefusal(protocol) }),
  );
  const text = await readEvents(answer, reader.event);
  if (text !== null && !reader.whole(parseObject(text) ?? {})) throw unexpectedAnswer(answer, text, hide);
  return growing.end();
}

/** Asks so many times at once; when one fails, the others are stopped. */
async function askTimes<Answer>(
  times: number,
  signal: AbortSignal,
  askOnce: (stop: AbortSignal, index: number) => Promise<Answer>,
): Promise<Answer[]> {
  if (times === 1) return [await askOnce(signal, 0)];
  const left = new AbortController();
  const stop = AbortSignal.any([signal, left.signal]);
  setMaxListeners(0, stop);
  try {
    return await Promise.all(Array.from({ length: times }, (_, index) => askOnce(stop, index)));
  } catch (error) {
    // Of the others nothing is known.
    throw isCallFailure(error) ? withoutCost(error) : error;
  } finally {
    left.abort();
  }
}

function withoutCost({ status, message, retryAfterS, code, cause, report }: CallFailure): CallFailure {
  const { cost_usd: _cost, usage: _usage, ...rest } = report ?? {};
  return new CallFailure(status, message, { retryAfterS, code, cause, report: rest });
}

/** @throws CallFailure `model_answer_invalid` */
function readChoice(answer: ModelAnswer, readJson: JsonReader | null, spent: Spent): AnswerChoice {
  const { text, toolCalls, finishReason: finish_reason, stopSequence } = answer;
  const end = { finish_reason, ...(stopSequence === null ? {} : { stop_sequence: stopSequence }) };
  if (toolCalls.length > 0) return { ...(text === '' ? {} : { text }), tool_calls: [...toolCalls], ...end };
  if (readJson === null || finish_reason === 'content_filter') return { text, ...end };
  return { text, json: readJson(answer, spent), ...end };
}

/** What answers have used together, and what they cost if that is known. Each was a request of its own. */
function spentOn({ prices }: ModelTerms, answers: readonly ModelAnswer[], at: number): Spent {
  const requests = answers.map(({ usage }) => usage);
  const cost_usd = prices === null ? null : costOfUsage(prices, requests, at);
  return { usage: sumUsage(requests), ...(cost_usd === null ? {} : { cost_usd }) };
}

function describeAnswers(
  answers: readonly ModelAnswer[],
  readJson: JsonReader | null,
  spent: Spent,
): ModelOutput {
  const choices = answers.map((answer) => readChoice(answer, readJson, spent));
  const [first, ...others] = choices as [AnswerChoice, ...AnswerChoice[]];
  const all = others.length === 0 ? {} : { choices };
  return { ...first, ...all, model: answers[0]?.model ?? '', ...spent };
}

async function perform(chat: Chat, { scope, context }: WrappedCall): Promise<Json> {
  const asked = scope.input as unknown as ModelInput;
  if (asked.messages.every(isOfSystem)) {
    throw providerFailure('provider_refused', '/messages: expected at least one message of the user', {
      cost_usd: 0,
    });
  }
  const input = askAgain(asked, context.previousFault);
  const schema = input.response_schema as JsonObject | undefined;
  const readJson = schema === undefined ? null : createJsonReader(schema, chat.provider.hide);
  const question = toQuestion(chat, input);
  const { n = 1 } = input;
  const { terms } = chat;
  requireRateFor(terms, n);
  requireCovered(terms, {
    way: 'translated',
    times: n,
    countQuestion: () => countTokens(terms, input),
    answer: question.maxOutputTokens,
  });
  const at = Date.now();
  const answers = await askTimes(n, context.signal, (signal, index) => {
    const tell = (delta: JsonObject): void => context.delta(n === 1 ? delta : { index, ...delta });
    return ask(chat, { question, signal, tell });
  });
  return describeAnswers(answers, readJson, spentOn(terms, answers, at)) as unknown as Json;
}

interface ChatHost {
  readonly host: WrapHost;
  /** The name of the part in the file. */
  readonly kind: string;
  /** Protocols in which the provider takes requests of clients as they came. */
  readonly spoken: NativeProtocols;
  readonly cache: CacheRules;
}

/** A file whose settings ask for a cache asks for any kind of it. */
function cacheOf({ settings }: ChatModelPart, cache: CacheRules): CacheRules {
  return JSON.stringify(settings).includes('cache') ? { ...cache, unasked: [] } : cache;
}

/** A field that the model does not take is missing, so that callers learn that it was left out. */
function inputOf({ reasoning_effort: efforts }: ChatModelPart): Schema {
  return efforts === undefined ? ChatInput : ThinkingChatInput;
}

/** An answer that does not come in parts shows nothing of its cost on the way. */
function costOfWhole(...of: Parameters<typeof costOfChat>) {
  const { worstCase } = costOfChat(...of);
  return { worstCase };
}

export function prepareChat(
  part: ChatModelPart,
  protocol: ModelProtocol,
  { host, kind, spoken, cache }: ChatHost,
): PreparedKind {
  const prices = readFilePrices(part, { host, kind, cache });
  const terms = readTerms(part, { ...prices, cache: cacheOf(part, cache) }, host);
  const provider = createProvider(part, { host, kind, headers: protocol.headers });
  const chat: Chat = { part, provider, protocol, terms };
  return {
    defaults: { input: inputOf(part), output: ChatOutput, timeout: '1h' },
    // A file that states whether its provider streams means translated requests.
    protocols: part.settings.stream === undefined ? Object.keys(spoken) : [],
    fileForm: 'data_uri',
    writesFiles: false,
    originOf: () => provider.origin,
    ...priceOf(terms, { write: part.settings.stream === undefined ? costOfChat : costOfWhole }),
    perform: (call) =>
      isNativeInput(call.scope.input)
        ? performNative({ part, provider, terms, spoken }, call)
        : perform(chat, call),
  };
}
