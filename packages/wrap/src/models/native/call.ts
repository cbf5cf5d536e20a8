/**
 * A call of `model.…` in the protocol of its client: the request travels as it came, and so does the answer. The reader of
 * the protocol learns beside it what was used, how the answer ended, and whether it failed.
 */
import type {
  ClientProtocol,
  NativeModelInput,
  NativeModelOutput,
} from '@capstan/core/contracts/model-protocol';
import type { Json } from '@capstan/core/contracts/primitives';
import { mediaPartTokens } from '@capstan/core/expression/language';
import { readEvents, unexpectedAnswer } from '../../exchange/event-stream.ts';
import { openExchange } from '../../exchange/exchange.ts';
import { providerFailure } from '../../exchange/provider-failure.ts';
import type { WrappedCall } from '../../wrap-kind.ts';
import { noteOf } from '../conversation.ts';
import { createModelAnswer, type GrowingAnswer } from '../model-answer.ts';
import type { ChatModelPart } from '../model-part.ts';
import { type ModelTerms, requireCovered, requireRateFor } from '../money/terms.ts';
import { type ModelProtocol, parseObject, usageOfRefusal } from '../protocol.ts';
import type { Provider } from '../provider.ts';
import { cutText } from '../tool-calls.ts';
import { createEventPasser } from './events.ts';
import { type NativeRequest, type RequestRules, toNativeRequest } from './request.ts';

/** A protocol of clients that a provider speaks. */
export interface NativeProtocol
  extends Pick<ModelProtocol, 'path' | 'createReader' | 'readUsage'>,
    RequestRules {}

export type NativeProtocols = Readonly<Partial<Record<ClientProtocol, NativeProtocol>>>;

export interface NativeModel {
  readonly part: ChatModelPart;
  readonly provider: Provider;
  readonly terms: ModelTerms;
  readonly spoken: NativeProtocols;
}

/** Headers of the client replace those of the protocol, and those of the file replace both. */
function headersOf(
  { part, provider }: NativeModel,
  { headers = {} }: NativeModelInput,
): Record<string, string> {
  const ofFile = new Set(Object.keys(part.headers).map((name) => name.toLowerCase()));
  const passed = Object.entries(headers).filter(([name]) => !ofFile.has(name));
  return { 'content-type': 'application/json', ...provider.origin.headers, ...Object.fromEntries(passed) };
}

/** Of the content of an answer only counts whether there is some. */
function createCount(askedModel: string, hide: Provider['hide']): GrowingAnswer {
  const growing = createModelAnswer({ askedModel, hide, tell: () => undefined });
  return { ...growing, tool: ({ name, written }) => growing.text(name || written) };
}

function requireMeans({ terms }: NativeModel, input: NativeModelInput, maxOutputTokens: number): void {
  const { n = 1, most_input_tokens: most } = input;
  requireRateFor(terms, n);
  const tokens = most * Math.max(1, terms.imageTokens / mediaPartTokens);
  requireCovered(terms, { way: 'native', times: n, countQuestion: () => tokens, answer: maxOutputTokens });
}

/** Prices of a file are those of usual service. @throws CallFailure `provider_refused` */
function requireUsualPrice({ terms: { prices } }: NativeModel, { surcharge }: NativeRequest): void {
  if (prices === null || surcharge === null) return;
  const message = `${surcharge} has no price here; the settings of the file may set the field`;
  throw providerFailure('provider_refused', message, { cost_usd: 0 });
}

interface AskedProvider {
  readonly protocol: NativeProtocol;
  readonly request: NativeRequest;
  readonly headers: Readonly<Record<string, string>>;
}

/** @throws CallFailure */
async function ask(
  { part, provider }: NativeModel,
  { protocol, request, headers }: AskedProvider,
  { context }: WrappedCall,
) {
  const { hide } = provider;
  const growing = createCount(part.model, hide);
  const reader = protocol.createReader(growing);
  const { isStream, hidesUsage, text: body } = request;
  const usageOf = usageOfRefusal(protocol);
  const exchange = { ...provider.send(protocol.path, { body, signal: context.signal, usageOf }), headers };
  const answer = await openExchange(isStream ? exchange : { ...exchange, idleMs: undefined });
  const raw: string[] = [];
  const passer = createEventPasser(hidesUsage, (events) => {
    for (const piece of cutText(events)) context.delta({ events: piece });
  });
  const pass = (text: string): void => (isStream ? passer.take(text) : void raw.push(text));
  const whole = await readEvents(answer, reader.event, pass);
  const isAnswer = whole === null || reader.whole(parseObject(whole) ?? {});
  if (!isAnswer) throw unexpectedAnswer(answer, whole, hide);
  const { model, usage } = growing.end();
  if (isStream && whole !== null) throw unexpectedAnswer(answer, whole, hide);
  passer.end();
  return { model, usage, ...(isStream ? {} : { response: whole ?? raw.join('') }) };
}

/** @throws CallFailure */
export async function performNative(model: NativeModel, call: WrappedCall): Promise<Json> {
  const input = call.scope.input as unknown as NativeModelInput;
  const protocol = model.spoken[input.protocol];
  if (protocol === undefined) {
    const message = `/protocol: the instance speaks ${Object.keys(model.spoken).join(', ') || 'none'}`;
    throw providerFailure('provider_refused', message, { cost_usd: 0 });
  }
  const { model: name, settings, max_output_tokens: maxOutputTokens } = model.part;
  const note = noteOf(call.context.previousFault);
  const rules = { ...protocol, model: name, settings, maxOutputTokens, note };
  const request = toNativeRequest(input.request, rules);
  requireUsualPrice(model, request);
  const most_input_tokens = input.most_input_tokens + Buffer.byteLength(note ?? '');
  requireMeans(model, { ...input, most_input_tokens }, request.maxOutputTokens);
  const answer = await ask(model, { protocol, request, headers: headersOf(model, input) }, call);
  const output: NativeModelOutput = { protocol: input.protocol, ...answer };
  return output as unknown as Json;
}
