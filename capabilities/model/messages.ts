/**
 * The conversation in a call of a model: messages in the form of OpenAI's chat completions, which most programs write,
 * and their translation for the providers.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import type { Prompt } from './provider-types.ts';

type ProviderMessage = Prompt[number];
type UserContent = Extract<ProviderMessage, { role: 'user' }>['content'];
type AssistantContent = Extract<ProviderMessage, { role: 'assistant' }>['content'];

const Text = z.string().min(1);
const TextPart = z.strictObject({ type: z.literal('text'), text: z.string() });

const dataUrl = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/]+={0,2})$/;
const Address = z.string().refine((url) => dataUrl.test(url) || /^https?:\/\/[^\s]+$/.test(url), {
  error: 'expected a data: URL in base64, or an http(s) URL that the provider can read',
});

const ContentPart = z.discriminatedUnion('type', [
  TextPart,
  z.strictObject({
    type: z.literal('image_url'),
    image_url: z.strictObject({ url: Address, detail: z.enum(['auto', 'low', 'high']).optional() }),
  }),
  z.strictObject({
    type: z.literal('input_audio'),
    input_audio: z.strictObject({ data: z.base64(), format: z.enum(['wav', 'mp3']) }),
  }),
  z.strictObject({
    type: z.literal('file'),
    file: z.strictObject({ file_data: z.string().regex(dataUrl), filename: z.string().optional() }),
  }),
]);
type ContentPart = z.infer<typeof ContentPart>;

export const ToolCall = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string(),
    arguments: z.string().meta({ description: 'JSON text, as the model wrote it.' }),
  }),
});
export type ToolCall = z.infer<typeof ToolCall>;

const name = z.string().optional();
const Texts = z.union([Text, z.array(TextPart).min(1)]);

export const Message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.enum(['system', 'developer']), content: Texts, name }),
  z.strictObject({
    role: z.literal('user'),
    content: z.union([Text, z.array(ContentPart).min(1).max(1_000)]),
    name,
  }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.union([z.string(), z.array(TextPart)]).nullish(),
    tool_calls: z.array(ToolCall).min(1).max(128).optional(),
    name,
  }),
  z.strictObject({
    role: z.literal('tool'),
    tool_call_id: z.string(),
    content: z.union([z.string(), z.array(TextPart)]),
  }),
]);
export type Message = z.infer<typeof Message>;

export function textOf(content: string | readonly { readonly text: string }[] | null | undefined): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => text).join('');
}

/** System messages go first, as one: many providers and chat templates allow nothing else. */
export function systemOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.role === 'system' || message.role === 'developer' ? [textOf(message.content)] : [],
  );
}

/** The other messages; an answer of a tool is named after the call that it belongs to. */
export function toPrompt(messages: readonly Message[]): Prompt {
  const calls = messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []) : [],
  );
  const toolNames = new Map(calls.map(({ id, function: { name } }) => [id, name]));
  return messages.flatMap((message) => toPromptMessage(message, toolNames) ?? []);
}

function toPromptMessage(message: Message, toolNames: ReadonlyMap<string, string>): ProviderMessage | null {
  switch (message.role) {
    case 'system':
    case 'developer':
      return null;
    case 'user':
      return { role: 'user', content: toUserContent(message.content) };
    case 'assistant':
      return { role: 'assistant', content: toAssistantContent(message) };
    case 'tool': {
      const { tool_call_id: toolCallId, content } = message;
      const output = { type: 'text' as const, value: textOf(content) };
      const toolName = toolNames.get(toolCallId) ?? toolCallId;
      return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] };
    }
  }
}

function toUserContent(content: string | readonly ContentPart[]): UserContent {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.filter((part) => part.type !== 'text' || part.text !== '').map(toUserPart);
}

function toUserPart(part: ContentPart): UserContent[number] {
  switch (part.type) {
    case 'text':
      return part;
    case 'image_url': {
      const [, mediaType, data] = dataUrl.exec(part.image_url.url) ?? [];
      if (data === undefined || mediaType === undefined)
        return { type: 'file', data: new URL(part.image_url.url), mediaType: 'image/*' };
      return { type: 'file', data, mediaType };
    }
    case 'input_audio':
      return { type: 'file', data: part.input_audio.data, mediaType: `audio/${part.input_audio.format}` };
    case 'file': {
      const { file_data, filename } = part.file;
      const [, mediaType = '', data = ''] = dataUrl.exec(file_data) ?? [];
      return { type: 'file', data, mediaType, ...(filename === undefined ? {} : { filename }) };
    }
  }
}

function toAssistantContent(message: Extract<Message, { role: 'assistant' }>): AssistantContent {
  const text = textOf(message.content);
  const { tool_calls = [] } = message;
  if (tool_calls.length === 0) return [{ type: 'text', text }];
  return [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...tool_calls.map(({ id, function: { name: toolName, arguments: written } }) => ({
      type: 'tool-call' as const,
      toolCallId: id,
      toolName,
      input: parseArguments(written),
    })),
  ];
}

/** A model may have written something that is no JSON; it gets that back as it was. */
function parseArguments(written: string): Json {
  try {
    return JSON.parse(written) as Json;
  } catch {
    return written;
  }
}

/**
 * The most tokens that messages can count: no tokenizer makes more of them than a text has bytes.
 * @param imageTokens the most that the provider counts for one image
 */
export function mostTokens(messages: readonly Message[], imageTokens: number): number {
  let images = 0;
  const texts = JSON.stringify(messages, (_key, value) => {
    if (value?.type !== 'image_url') return value;
    images += 1;
    return null;
  });
  return Buffer.byteLength(texts) + images * imageTokens;
}
