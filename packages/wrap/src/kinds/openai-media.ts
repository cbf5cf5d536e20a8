/** Transcriptions, speech and images by OpenAI's protocol, which vLLM, whisper servers and others speak. */
import { writeFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { MediaReference } from '@capstan/capability';
import { type Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList } from '@capstan/core/json/values';
import { FormData } from 'undici';
import { z } from 'zod';
import { contentTypeOf, openAsBlob } from '../call-files.ts';
import { askJson, openExchange, readBytes } from '../exchange/exchange.ts';
import { providerFailure } from '../exchange/provider-failure.ts';
import type { Provider } from '../models/provider.ts';
import { asObject } from '../templates.ts';
import type { WrapDefaults, WrappedCall } from '../wrap-kind.ts';

interface MediaPart {
  readonly model: string;
  readonly settings: JsonObject;
}

interface Endpoint extends WrapDefaults {
  perform(part: MediaPart, provider: Provider, call: WrappedCall): Promise<Json>;
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

const reference = JsonObject.parse(z.toJSONSchema(MediaReference));

function objectSchema(properties: JsonObject, required: readonly string[]): JsonObject {
  return { type: 'object', required, properties, additionalProperties: false };
}

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
  perform: async ({ model, settings }, { send }, call) => {
    const { audio = '', language, prompt } = fieldsOf(call);
    const path = await call.context.media.download(String(audio));
    const form = new FormData();
    form.append('file', await openAsBlob(path), basename(path));
    const fields = withoutNull({ model, language, prompt, response_format: 'verbose_json', ...settings });
    for (const [name, value] of Object.entries(fields)) {
      form.append(name, typeof value === 'string' ? value : JSON.stringify(value));
    }
    const answer = asObject(
      await askJson(send('/audio/transcriptions', { form, signal: call.context.signal })),
    );
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
  perform: async ({ model, settings }, { send }, call) => {
    const { text: words, voice, instructions, output_path } = fieldsOf(call);
    const format = extname(String(output_path)).slice(1);
    const chosen = { voice: 'alloy', response_format: format, ...settings };
    const asked = withoutNull({ voice, instructions });
    const body = withoutNull({ model, input: words, ...chosen, ...asked });
    const answer = await openExchange(send('/audio/speech', { body, signal: call.context.signal }));
    const path = await call.context.media.temporaryPath(`speech.${format}`);
    await writeFile(path, await readBytes(answer));
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
  perform: async ({ model, settings }, { send }, call) => {
    const { output_path, ...fields } = fieldsOf(call);
    const body = withoutNull({ model, n: 1, response_format: 'b64_json', ...settings, ...fields });
    const answer = asObject(
      await askJson(send('/images/generations', { body, signal: call.context.signal })),
    );
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

export const mediaEndpoints = { transcriptions, speech, images } as const satisfies Record<string, Endpoint>;
