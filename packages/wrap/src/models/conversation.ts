/**
 * Input and output of `model.…`: messages in the form of OpenAI's chat completions, which most programs write. All kinds
 * of models have these schemas, so that their instances may serve one name.
 */
import type { PreviousFault } from '@capstan/core/call/wrong-answer';
import { z } from 'zod';
import { shorten } from '../exchange/provider-failure.ts';
import { Usage } from './money/usage.ts';

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
export type ContentPart = z.infer<typeof ContentPart>;

/** Null: the address is none of data. */
export function readDataUrl(url: string): { readonly type: string; readonly data: string } | null {
  const [, type, data] = dataUrl.exec(url) ?? [];
  return type === undefined || data === undefined ? null : { type, data };
}

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

const Message = z.discriminatedUnion('role', [
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
    name,
  }),
]);
export type Message = z.infer<typeof Message>;

const ToolName = z.string().regex(/^[\w-]{1,128}$/);

const OfferedTool = z.strictObject({
  name: ToolName,
  description: z.string().optional(),
  parameters: z.record(z.string(), z.unknown()).optional(),
});
/** A function that the model may call; the caller executes it. */
export type OfferedTool = z.infer<typeof OfferedTool>;

export const ModelInput = z.strictObject({
  messages: z.array(Message).min(1).max(1_000),
  response_schema: z.record(z.string(), z.unknown()).optional(),
  tools: z.array(OfferedTool).max(1_000).optional().meta({
    description: 'Functions that the model may call; the answer names them in `tool_calls`.',
  }),
  tool_choice: z.union([z.enum(['auto', 'none', 'required']), z.strictObject({ name: ToolName })]).optional(),
  max_output_tokens: z.number().int().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  presence_penalty: z.number().min(-2).max(2).optional(),
  frequency_penalty: z.number().min(-2).max(2).optional(),
  stop: z.array(z.string().min(1)).min(1).max(32).optional(),
  seed: z.number().int().optional(),
  n: z.number().int().min(1).max(8).optional().meta({
    description: 'Answers; more than one are `choices` of the output. Each is a request to the provider.',
  }),
});
/** Declared by models alone that take it. */
export const ReasoningEffort = z.string().min(1).max(32).meta({
  description:
    'How long the model thinks before it answers, such as `low`; the nearest effort that it knows.',
});
export interface ModelInput extends z.infer<typeof ModelInput> {
  readonly reasoning_effort?: z.infer<typeof ReasoningEffort> | undefined;
}

export const EndReason = z.enum(['stop', 'length', 'content_filter', 'tool_calls', 'other']);
export type EndReason = z.infer<typeof EndReason>;

const AnswerChoice = z.object({
  text: z.string().optional().meta({
    description: 'The answer; with a `response_schema` the text of the JSON, as it was checked.',
  }),
  json: z.unknown().optional(),
  tool_calls: z.array(ToolCall).optional(),
  finish_reason: EndReason,
  stop_sequence: z.string().optional().meta({
    description: 'The text of `stop` that ended the answer; only of providers that say it.',
  }),
});
export type AnswerChoice = z.infer<typeof AnswerChoice>;

export const ModelOutput = AnswerChoice.extend({
  choices: z.array(AnswerChoice).optional().meta({
    description: 'The answers, where `n` asks for several; the fields beside it are those of the first.',
  }),
  model: z.string(),
  usage: Usage,
  cost_usd: z.number().min(0).optional(),
});
export type ModelOutput = z.infer<typeof ModelOutput>;

export function textOf(content: string | readonly { readonly text: string }[] | null | undefined): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => text).join('');
}

export function isOfSystem({ role }: Message): boolean {
  return role === 'system' || role === 'developer';
}

/** System messages go first, as one: many providers and chat templates allow nothing else. */
export function systemOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.role === 'system' || message.role === 'developer' ? [textOf(message.content)] : [],
  );
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

const longestFault = 1_000;

/** @returns the message to the model; null: no answer was wrong */
export function noteOf(fault: PreviousFault | undefined): string | null {
  if (fault === undefined) return null;
  const { message, errors = [] } = fault;
  const findings = errors.map(({ pointer, message: words }) => `${pointer || 'the answer'} ${words}`);
  const others = findings.filter((finding) => !message.includes(finding)).map((finding) => `\n- ${finding}`);
  const reasons = shorten(message + others.join(''), longestFault);
  return `Your last answer was not valid: ${reasons}\nAnswer again without this fault.`;
}

/**
 * A question whose last answer was wrong: the model receives the reason as the last message of the user. Everything
 * before it stays as it was, so that a cache of the provider still knows the beginning.
 */
export function askAgain(input: ModelInput, fault: PreviousFault | undefined): ModelInput {
  const note = noteOf(fault);
  return note === null ? input : { ...input, messages: [...input.messages, toMessage(note)] };
}

/** A message of the user, in every protocol. */
export function toMessage(content: string): { readonly role: 'user'; readonly content: string } {
  return { role: 'user', content };
}
