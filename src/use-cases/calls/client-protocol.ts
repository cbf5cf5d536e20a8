/**
 * A request of a client's protocol as a call of a model: an instance that speaks the protocol gets it as it came, any
 * other one gets its translation. The answer names the fields that a translation drops; a strict client
 * gets a refusal.
 */

import type { ProjectKey } from '@capstan/core/call/caller';
import type { CallForms, ChosenForm } from '@capstan/core/call/types';
import type { ExecRequest } from '@capstan/core/contracts/decision';
import {
  addedTokens,
  type ClientProtocol,
  type NativeModelInput,
  NativeModelOutput,
  NativeModelPart,
} from '@capstan/core/contracts/model-protocol';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { AppError, refuseRequest } from '@capstan/core/errors/app-error';
import { findLostNumbers } from '@capstan/core/json/numbers';
import { findUnstorable, type JsonTextFault } from '@capstan/core/json/scan';
import { isPlainObject } from '@capstan/core/json/values';
import type { Translation } from '@capstan/core/model-protocols/translation';
import { createCostOfInput } from '@capstan/core/money/cost-expressions';
import { maySpeak, type SpokenProtocol } from '@capstan/core/routing/types';
import type { ServerCtx } from '../../context.ts';
import type { CallCtx } from './direct-calls.ts';

/** The request as the client sent it. */
export interface ClientRequest {
  readonly bytes: Buffer;
  /** Headers that its provider reads too. */
  readonly headers: NonNullable<NativeModelInput['headers']>;
  /** Refuses what a translation would leave out. */
  readonly isStrict: boolean;
}

/** A call, and what its instance gets of the request. */
export interface PreparedCall {
  readonly capability: string;
  readonly input: JsonObject;
  readonly declaredFields: readonly string[];
  readonly forms: CallForms | undefined;
  readonly protocol: SpokenProtocol | undefined;
  readonly toolNames: Translation['toolNames'];
  /** Whether the last attempt speaks the protocol of the client. */
  isNative(): boolean;
  /** Fields of the request that the instance of the last attempt did not get. */
  dropped(): readonly string[];
  /** An error of the call, with the names that the client gave to the fields. */
  explain(error: unknown): unknown;
}

interface AskedInProtocol {
  readonly capability: string;
  readonly protocol: ClientProtocol;
  readonly body: JsonObject;
  readonly translation: Translation;
  /** No instance gets the request as it came. Default: one that speaks the protocol does. */
  readonly isNeutral?: boolean;
}

interface ProtocolTerms {
  readonly caller: ProjectKey;
  readonly constraints: Omit<ExecRequest, 'input'>;
  readonly client: ClientRequest;
}

/** The most tokens that a request can count, by the rule of the filter `tokens`. */
export function countMostTokens(body: JsonObject, bytes: number): number {
  const tokens = createCostOfInput(body)('{{ input | tokens }}');
  return typeof tokens === 'number' ? Math.ceil(tokens) : bytes;
}

const toolFields = ['tools', 'functions', 'mcp_servers'] as const;

/** What a model adds to a request. Protocols name schemas of answers in many ways, so one is always counted. */
function countAdded(body: JsonObject): number {
  const hasTools = toolFields.some((field) => body[field] !== undefined);
  return addedTokens.schema + (hasTools ? addedTokens.tools : 0);
}

function toNativeInput(
  { protocol, body, translation: { input } }: AskedInProtocol,
  { bytes, headers }: ClientRequest,
): JsonObject {
  const { max_output_tokens, n } = input;
  return {
    protocol,
    request: bytes.toString('utf8'),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
    ...(n === undefined ? {} : { n }),
    most_input_tokens: countMostTokens(body, bytes.length) + countAdded(body),
  };
}

/** An equal request of another protocol takes the same cached answer, so such a call has the neutral form. */
function hasSpeaker(
  { fleet }: Pick<CallCtx, 'fleet'>,
  { caller, constraints }: ProtocolTerms,
  { capability, protocol, isNeutral = false }: AskedInProtocol,
): boolean {
  if (isNeutral || constraints.cache !== undefined) return false;
  const { instances } = fleet.seenBy(caller.project_id).of(capability);
  return instances.some((instance) => maySpeak(instance, protocol));
}

const strictness = 'and the request or its project is strict (X-Capstan-Strict)';
const notTaken = `is taken by no instance, ${strictness}`;

/** A strict client asks for fields that no instance declares. */
function explainWith(offered: Translation['offered'], error: unknown): unknown {
  if (!(error instanceof AppError) || error.code !== 'input_invalid') return error;
  const found = (error.errors ?? []).flatMap(({ pointer }) => {
    const field = pointer.split('/').at(-1) ?? '';
    return pointer === `/input/${field}` || pointer === `/${field}` ? [field] : [];
  });
  const left = found.filter((field) => Object.hasOwn(offered, field));
  if (left.length === 0) return error;
  return refuseRequest(left.map((field) => toItem(toPointer(offered[field] as string), notTaken)));
}

function toPointer(path: string): string {
  return `/${path.replaceAll('.', '/')}`;
}

function toItem(pointer: string, message: string, code = 'invalid_value') {
  return { pointer, code, message };
}

function refuseText({ code, message }: JsonTextFault): AppError {
  return new AppError(code, `the body ${message}`);
}

/** @throws AppError `malformed_json` for characters that cannot be stored */
export function requireStorable({ bytes }: Pick<ClientRequest, 'bytes'>): void {
  const fault = findUnstorable(bytes, bytes.toString('utf8'));
  if (fault !== null) throw refuseText(fault);
}

/**
 * Why the request cannot be translated: a translation also changes numbers that JavaScript cannot keep, and is read by
 * programs that cannot store every character.
 */
function refuseTranslation(
  { refused, dropped }: Translation,
  { bytes }: ClientRequest,
  isStrict: boolean,
): AppError | null {
  const text = bytes.toString('utf8');
  const unstorable = findUnstorable(bytes, text);
  if (unstorable !== null) return refuseText(unstorable);
  const left = isStrict
    ? dropped.map((path) => toItem(toPointer(path), `would be left out, ${strictness}`))
    : [];
  const numbers = findLostNumbers(text).map((one) => ({ ...one, code: 'number_inexact' }));
  const fields = refused.map(({ pointer, message, code }) => toItem(pointer, message, code));
  const obstacles = [...numbers, ...fields, ...left];
  return obstacles.length === 0 ? null : refuseRequest(obstacles);
}

/** An instance that let `n` pass without reading it would answer once. */
function declaredIn({ n }: JsonObject): readonly string[] {
  return n === undefined ? [] : ['n'];
}

/** The forms of a request, and which one the instance of the last attempt gets. */
function createForms(asked: AskedInProtocol, client: ClientRequest, optional: readonly string[]) {
  let native: JsonObject | null = null;
  let chosen: ChosenForm = { isNative: false, left: [] };
  const forms: CallForms = {
    protocol: asked.protocol,
    native: () => {
      native ??= toNativeInput(asked, client);
      return native;
    },
    optional,
    onChosen: (form) => {
      chosen = form;
    },
  };
  return { forms, chosen: () => chosen };
}

/** @throws AppError `request_invalid`, `malformed_json` for a request that no instance can take */
export async function prepareCall(
  ctx: Pick<ServerCtx, 'fleet' | 'modelRules'>,
  terms: ProtocolTerms,
  asked: AskedInProtocol,
): Promise<PreparedCall> {
  const { capability, protocol, translation } = asked;
  const { input, offered, toolNames } = translation;
  // A client may be stricter than its project, but not laxer.
  const isStrict = terms.client.isStrict || (await ctx.modelRules.of(terms.caller.project_id)).isStrict;
  const refusal = refuseTranslation(translation, terms.client, isStrict);
  const isSpoken = hasSpeaker(ctx, terms, asked);
  if (!isSpoken && refusal !== null) throw refusal;
  const optional = Object.keys(offered);
  const { forms, chosen } = createForms(asked, terms.client, isStrict ? [] : optional);
  return {
    capability,
    input,
    declaredFields: [...declaredIn(input), ...(isStrict ? optional : [])],
    forms: isSpoken || optional.length > 0 ? forms : undefined,
    protocol: isSpoken ? { name: protocol, isRequired: refusal !== null } : undefined,
    toolNames,
    isNative: () => chosen().isNative,
    explain: (error) => (isStrict ? explainWith(offered, error) : error),
    dropped: () => {
      const { isNative, left } = chosen();
      return isNative ? [] : [...translation.dropped, ...left.map((field) => offered[field] ?? field)];
    },
  };
}

/** The output of an instance that spoke the client's protocol; null: it is in the neutral form. */
export function readNativeOutput(output: Json): NativeModelOutput | null {
  // Of most answers; a parser that refuses one takes ten times as long.
  if (!isPlainObject(output) || output.protocol === undefined) return null;
  const { success, data } = NativeModelOutput.safeParse(output);
  return success ? data : null;
}

/** The text of a part of a stream in the client's protocol; null: it is none. */
export function readNativePart(delta: Json): string | null {
  const { success, data } = NativeModelPart.safeParse(delta);
  return success ? data.events : null;
}
