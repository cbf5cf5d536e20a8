/**
 * Kind `openai`: chat, transcriptions, speech and images by OpenAI's protocol, which vLLM, Ollama, llama.cpp and whisper
 * servers speak. Its schemas are its own. Those of chat are a subset of `model.…` capabilities, so a wrapped model
 * may serve a level of the escalation ladder.
 */
import { writeFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { CallFailure, MediaReference } from '@capstan/capability';
import { isCallFailure } from '@capstan/capability/call-failure';
import { compileSchema } from '@capstan/capability/schema';
import { type Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList } from '@capstan/core/json/values';
import { FormData, type Response } from 'undici';
import { z } from 'zod';
import { contentTypeOf, openAsBlob } from '../call-files.ts';
import { askJson, type Exchange, openExchange, providerFailure, readBytes, readLines } from '../exchange.ts';
import { asObject } from '../templates.ts';
import {
  BaseAddress,
  defineKind,
  Secret,
  type WrapDefaults,
  type WrapHost,
  type WrappedCall,
} from '../wrap-kind.ts';

const OpenaiPart = z.strictObject({
  base_url: BaseAddress,
  token: Secret.optional(),
  endpoint: z.enum(['chat', 'transcriptions', 'speech', 'images']),
  model: z.string().min(1),
  /** Further fields of each request; a field with null is left out. */
  settings: JsonObject.default({}),
});
type OpenaiPart = z.infer<typeof OpenaiPart>;

/** Sends one request below the base address. */
type Send = (path: string, content: Pick<Exchange, 'body' | 'form'>, signal: AbortSignal) => Exchange;

interface Endpoint extends WrapDefaults {
  perform(part: OpenaiPart, send: Send, call: WrappedCall): Promise<Json>;
}

function withoutNull(fields: Readonly<Record<string, Json | undefined>>): JsonObject {
  const present = Object.entries(fields).filter(
    (field): field is [string, Json] => field[1] !== undefined && field[1] !== null,
  );
  return Object.fromEntries(present);
}

function fieldsOf({ scope }: WrappedCall): JsonObject {
  return asObject(scope.input) ?? {};
}

const text = { type: 'string', minLength: 1 } as const;
function number(minimum: number, maximum: number): JsonObject {
  return { type: 'number', minimum, maximum };
}

const reference = JsonObject.parse(z.toJSONSchema(MediaReference));

function objectSchema(properties: JsonObject, required: readonly string[]): JsonObject {
  return { type: 'object', required, properties, additionalProperties: false };
}

// Chat: always asked for as a stream, so that parts of the answer can be passed on; a whole answer is accepted too.

interface ChatPieces {
  text: string;
  model: string | null;
  finishReason: string | null;
  /** The text of `stop` that ended the answer; vLLM reports it in `stop_reason`. */
  stopSequence: string | null;
  usage: JsonObject | null;
}

/** The JSON values of server-sent events. */
async function* readEvents(response: Response, exchange: Exchange): AsyncGenerator<JsonObject> {
  for await (const line of readLines(response, exchange)) {
    const data = line.startsWith('data:') ? line.slice(5).trim() : '';
    if (data !== '' && data !== '[DONE]') yield JSON.parse(data) as JsonObject;
  }
}

function takePiece(pieces: ChatPieces, event: JsonObject): string {
  const [choice] = isList(event.choices ?? null) ? (event.choices as readonly Json[]) : [];
  const { delta, message, finish_reason: reason, stop_reason: stop } = asObject(choice ?? null) ?? {};
  const content = asObject(delta ?? message ?? null)?.content;
  if (typeof event.model === 'string') pieces.model = event.model;
  if (typeof reason === 'string') pieces.finishReason = reason;
  if (typeof stop === 'string') pieces.stopSequence = stop;
  pieces.usage = asObject(event.usage ?? null) ?? pieces.usage;
  const piece = typeof content === 'string' ? content : '';
  pieces.text += piece;
  return piece;
}

async function readChat(
  response: Response,
  exchange: Exchange,
  { context }: WrappedCall,
): Promise<ChatPieces> {
  const pieces: ChatPieces = {
    text: '',
    model: null,
    finishReason: null,
    stopSequence: null,
    usage: null,
  };
  const take = (event: JsonObject): void => {
    if (event.error !== undefined) throw new Error(`the provider reports ${JSON.stringify(event.error)}`);
    for (const content of takePiece(pieces, event).match(/[\s\S]{1,1000}/gu) ?? [])
      context.delta({ content });
  };
  try {
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    if (isStream) for await (const event of readEvents(response, exchange)) take(event);
    else take(JSON.parse((await readBytes(response, exchange)).toString('utf8')) as JsonObject);
    if (pieces.finishReason === null) throw new Error('the answer ended before it was complete');
  } catch (error) {
    exchange.signal.throwIfAborted();
    if (isCallFailure(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw providerFailure('provider_unavailable', exchange.hide(`the answer cannot be used: ${reason}`));
  }
  return pieces;
}

function invalidAnswer(message: string): CallFailure {
  return new CallFailure(422, message, { code: 'model_answer_invalid' });
}

/** @throws CallFailure when the text is not JSON of the schema */
async function readJsonText(written: string, schema: JsonObject): Promise<Json> {
  let value: Json;
  try {
    value = JSON.parse(written.replace(/^\s*```(?:json)?\s*([\s\S]*?)\s*```\s*$/, '$1')) as Json;
  } catch {
    throw invalidAnswer(`the answer is no JSON: ${written.slice(0, 200)}`);
  }
  const checked = await compileSchema(schema, 'output').check(value);
  if (checked.ok) return value;
  throw invalidAnswer(`the answer does not match response_schema: ${checked.error}`);
}

const finishReasons = ['stop', 'length', 'content_filter', 'tool_calls'];

const tokens = { type: ['integer', 'null'], minimum: 0 };

const chat: Endpoint = {
  input: objectSchema(
    {
      messages: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['role', 'content'],
          properties: { role: { enum: ['system', 'developer', 'user', 'assistant', 'tool'] } },
        },
      },
      response_schema: { type: 'object' },
      max_output_tokens: { type: 'integer', minimum: 1 },
      temperature: number(0, 2),
      top_p: number(0, 1),
      presence_penalty: number(-2, 2),
      frequency_penalty: number(-2, 2),
      stop: { type: 'array', minItems: 1, maxItems: 4, items: text },
      seed: { type: 'integer' },
    },
    ['messages'],
  ),
  output: {
    type: 'object',
    required: ['model', 'finish_reason', 'usage'],
    properties: {
      text: { type: 'string' },
      json: {},
      model: { type: 'string' },
      finish_reason: { enum: [...finishReasons, 'other'] },
      stop_sequence: { type: 'string' },
      usage: { type: 'object', properties: { input_tokens: tokens, output_tokens: tokens } },
    },
  },
  perform: async ({ model, settings }, send, call) => {
    const { response_schema, max_output_tokens: max_tokens, ...fields } = fieldsOf(call);
    const schema = asObject(response_schema ?? null);
    const format =
      schema === null ? undefined : { type: 'json_schema', json_schema: { name: 'answer', schema } };
    const stream = { stream: true, stream_options: { include_usage: true } };
    const body = withoutNull({
      ...fields,
      ...stream,
      model,
      max_tokens,
      response_format: format,
      ...settings,
    });
    const exchange = send('/chat/completions', { body }, call.context.signal);
    const pieces = await readChat(await openExchange(exchange), exchange, call);
    const reason = pieces.finishReason ?? '';
    if (pieces.text.trim() === '') throw invalidAnswer(`the answer is empty, finish_reason ${reason}`);
    const content: JsonObject =
      schema === null ? { text: pieces.text } : { json: await readJsonText(pieces.text, schema) };
    const { prompt_tokens = null, completion_tokens = null } = pieces.usage ?? {};
    return {
      ...content,
      model: pieces.model ?? model,
      finish_reason: finishReasons.includes(reason) ? reason : 'other',
      ...(pieces.stopSequence === null ? {} : { stop_sequence: pieces.stopSequence }),
      usage: { input_tokens: prompt_tokens, output_tokens: completion_tokens },
    };
  },
};

const transcriptions: Endpoint = {
  input: objectSchema({ audio: reference, language: text, prompt: text }, ['audio']),
  output: {
    type: 'object',
    required: ['text'],
    properties: {
      text: { type: 'string' },
      language: { type: ['string', 'null'] },
      duration_s: { type: ['number', 'null'] },
      segments: {
        type: 'array',
        items: {
          type: 'object',
          properties: { start: { type: 'number' }, end: { type: 'number' }, text: { type: 'string' } },
        },
      },
    },
  },
  perform: async ({ model, settings }, send, call) => {
    const { audio = '', language, prompt } = fieldsOf(call);
    const path = await call.context.media.download(String(audio));
    const form = new FormData();
    form.append('file', await openAsBlob(path), basename(path));
    const fields = withoutNull({ model, language, prompt, response_format: 'verbose_json', ...settings });
    for (const [name, value] of Object.entries(fields)) {
      form.append(name, typeof value === 'string' ? value : JSON.stringify(value));
    }
    const answer = asObject(await askJson(send('/audio/transcriptions', { form }, call.context.signal)));
    const { text: spoken, language: heard = null, duration = null, segments } = answer ?? {};
    if (typeof spoken !== 'string') throw providerFailure('provider_unavailable', 'the answer has no text');
    const parts = isList(segments ?? null) ? (segments as readonly Json[]) : [];
    return {
      text: spoken,
      language: heard,
      duration_s: duration === null ? null : Number(duration),
      segments: parts.map((part) => {
        const { start = 0, end = 0, text: words = '' } = asObject(part) ?? {};
        return { start, end, text: words };
      }),
    };
  },
};

const speech: Endpoint = {
  input: objectSchema(
    {
      text,
      voice: text,
      instructions: text,
      output_path: { ...reference, pattern: '^media://.+\\.(mp3|opus|aac|flac|wav)$' },
    },
    ['text', 'output_path'],
  ),
  output: { type: 'object', required: ['output_path'], properties: { output_path: { type: 'string' } } },
  uploads: { audio: { from: '{{ answer.file }}', to: '{{ input.output_path }}' } },
  result: { output_path: '{{ files.audio }}' },
  perform: async ({ model, settings }, send, call) => {
    const { text: words, voice, instructions, output_path } = fieldsOf(call);
    const format = extname(String(output_path)).slice(1);
    const chosen = { voice: 'alloy', response_format: format, ...settings };
    const asked = withoutNull({ voice, instructions });
    const body = withoutNull({ model, input: words, ...chosen, ...asked });
    const exchange = send('/audio/speech', { body }, call.context.signal);
    const path = await call.context.media.temporaryPath(`speech.${format}`);
    await writeFile(path, await readBytes(await openExchange(exchange), exchange));
    return { file: call.keep(path, contentTypeOf(path)) };
  },
};

const images: Endpoint = {
  input: objectSchema(
    {
      prompt: text,
      size: { type: 'string', pattern: '^[0-9]+x[0-9]+$' },
      n: { type: 'integer', minimum: 1, maximum: 10 },
      output_path: reference,
    },
    ['prompt', 'output_path'],
  ),
  output: {
    type: 'object',
    required: ['output_path', 'output_paths'],
    properties: {
      output_path: { type: 'string' },
      output_paths: { type: 'array', items: { type: 'string' } },
    },
  },
  uploads: { images: { from: '{{ answer.images }}', to: '{{ input.output_path }}' } },
  result: { output_path: '{{ files.images[0] }}', output_paths: '{{ files.images }}' },
  perform: async ({ model, settings }, send, call) => {
    const { output_path, ...fields } = fieldsOf(call);
    const body = withoutNull({ model, n: 1, response_format: 'b64_json', ...settings, ...fields });
    const answer = asObject(await askJson(send('/images/generations', { body }, call.context.signal)));
    const rows = isList(answer?.data ?? null) ? (answer?.data as readonly Json[]) : [];
    if (rows.length === 0) throw providerFailure('provider_unavailable', 'the answer has no images');
    const usage = answer?.usage ?? null;
    return { images: await Promise.all(rows.map((row) => keepImage(row, String(output_path), call))), usage };
  },
};

/** @returns an address, or the name of a kept file */
async function keepImage(row: Json, target: string, { context, keep }: WrappedCall): Promise<string> {
  const { url, b64_json: bytes } = asObject(row) ?? {};
  if (typeof url === 'string') return url;
  if (typeof bytes !== 'string')
    throw providerFailure('provider_unavailable', 'an image of the answer has no bytes');
  const path = await context.media.temporaryPath(`image${extname(target)}`);
  await writeFile(path, Buffer.from(bytes, 'base64'));
  return keep(path, contentTypeOf(path));
}

const endpoints = { chat, transcriptions, speech, images } as const satisfies Record<
  OpenaiPart['endpoint'],
  Endpoint
>;

export const openai = defineKind({
  shape: OpenaiPart,
  prepare: (part, { compile, hide }: WrapHost) => {
    const { perform, ...defaults } = endpoints[part.endpoint];
    const headers: Record<string, string> =
      part.token === undefined ? {} : { authorization: `Bearer ${part.token}` };
    const at = compile.base(part.base_url, '/openai/base_url');
    const send: Send = (path, content, signal) => ({
      method: 'POST',
      target: at(path),
      headers,
      signal,
      hide,
      ...content,
    });
    return {
      defaults,
      fileForm: 'data_uri',
      writesFiles: false,
      origin: { url: part.base_url, headers },
      perform: (call) => perform(part, send, call),
    };
  },
});
