/** Anthropic's messages. A field of the input that they do not have is left out: penalties and the seed. */
import { writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList, isPlainObject } from '@capstan/core/json/values';
import { providerFailure, readProviderError, unnamedError } from '../exchange/provider-failure.ts';
import {
  type ContentPart,
  type Message,
  type OfferedTool,
  readDataUrl,
  type ToolCall,
  textOf,
} from './conversation.ts';
import type { GrowingAnswer } from './model-answer.ts';
import { type ChatModelPart, leastBudget } from './model-part.ts';
import { readAnthropicUsage } from './money/usage.ts';
import {
  type AnswerReader,
  fieldOf,
  type ModelProtocol,
  parseObject,
  type Question,
  readObjects,
  textField,
} from './protocol.ts';
import { argumentsOf, toWireId } from './tool-calls.ts';

const allowedId = /^[a-zA-Z0-9_-]{1,64}$/;

function refusePart(what: string): Error {
  return providerFailure('provider_refused', `Anthropic's messages take no ${what}`, { cost_usd: 0 });
}

function toFileBlock({ file_data, filename }: Extract<ContentPart, { type: 'file' }>['file']): JsonObject {
  const { type, data } = readDataUrl(file_data) ?? { type: '', data: '' };
  if (type.startsWith('image/')) return { type: 'image', source: { type: 'base64', media_type: type, data } };
  const title: JsonObject = filename === undefined ? {} : { title: filename };
  if (type === 'application/pdf') {
    return { type: 'document', ...title, source: { type: 'base64', media_type: type, data } };
  }
  if (!type.startsWith('text/'))
    throw refusePart(`file of the type ${type}; images, PDF and texts are allowed`);
  const text = Buffer.from(data, 'base64').toString('utf8');
  return { type: 'document', ...title, source: { type: 'text', media_type: 'text/plain', data: text } };
}

/** @throws CallFailure for a part that has no place */
function toBlock(part: ContentPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image_url': {
      const { url } = part.image_url;
      const inline = readDataUrl(url);
      if (inline === null) return { type: 'image', source: { type: 'url', url } };
      return { type: 'image', source: { type: 'base64', media_type: inline.type, data: inline.data } };
    }
    case 'input_audio':
      throw refusePart('audio');
    case 'file':
      return toFileBlock(part.file);
  }
}

function toUserBlocks(content: string | readonly ContentPart[]): JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.filter((part) => part.type !== 'text' || part.text !== '').map(toBlock);
}

/** A model may have written something that is no object of JSON; it gets that back as it was. */
function toToolUse({ id, function: { name, arguments: written } }: ToolCall): JsonObject {
  const input = written.trim() === '' ? {} : (parseObject(written) ?? { INVALID_JSON: written });
  return { type: 'tool_use', id: toWireId(id, allowedId), name, input };
}

interface WireTurn {
  readonly role: 'user' | 'assistant';
  readonly content: JsonObject[];
}

function toTurn(message: Message): WireTurn | null {
  switch (message.role) {
    case 'system':
    case 'developer':
      return null;
    case 'user':
      return { role: 'user', content: toUserBlocks(message.content) };
    case 'assistant': {
      const text = textOf(message.content);
      const texts = text.trim() === '' ? [] : [{ type: 'text', text }];
      return { role: 'assistant', content: [...texts, ...(message.tool_calls ?? []).map(toToolUse)] };
    }
    case 'tool': {
      const tool_use_id = toWireId(message.tool_call_id, allowedId);
      return {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id, content: textOf(message.content) }],
      };
    }
  }
}

/** The results of all calls of a turn are one message; an empty turn is none. */
function toTurns(messages: readonly Message[]): WireTurn[] {
  const turns: WireTurn[] = [];
  for (const message of messages) {
    const turn = toTurn(message);
    const last = turns.at(-1);
    if (turn === null || turn.content.length === 0) continue;
    if (last?.role === turn.role) last.content.push(...turn.content);
    else turns.push(turn);
  }
  const last = turns.at(-1);
  const text = last?.content.at(-1)?.text;
  // A text that is to be continued may not end with white space.
  if (last?.role === 'assistant' && typeof text === 'string') {
    last.content.splice(-1, 1, { type: 'text', text: text.trimEnd() });
  }
  return turns;
}

function toWireTool({ name, description, parameters }: OfferedTool): JsonObject {
  const input_schema = (parameters ?? { type: 'object', properties: {} }) as JsonObject;
  return { name, ...(description === undefined ? {} : { description }), input_schema };
}

function toWireChoice(choice: Question['toolChoice'] = 'auto'): Json {
  if (typeof choice === 'object') return { type: 'tool', name: choice.name };
  return { type: choice === 'required' ? 'any' : choice };
}

type Efforts = ChatModelPart['reasoning_effort'];

interface AnthropicOptions {
  readonly model: string;
  readonly token?: string | undefined;
  readonly reasoning_effort?: Efforts;
}

/** These models think only if they are asked to. */
function effortOf({ effort, input }: Question): string | undefined {
  return input.reasoning_effort === 'none' ? undefined : effort;
}

/** A forced tool excludes thoughts. With a budget, a turn that began without thoughts continues without them. */
function mayThink({ toolChoice, messages }: Question, isBudgeted: boolean): boolean {
  const isForced = toolChoice === 'required' || typeof toolChoice === 'object';
  return !isForced && !(isBudgeted && messages.at(-1)?.role === 'tool');
}

function toThinking(question: Question, efforts: Efforts): JsonObject | undefined {
  const effort = effortOf(question);
  const budgets = Array.isArray(efforts) ? undefined : efforts;
  if (effort === undefined || !mayThink(question, budgets !== undefined)) return undefined;
  if (budgets === undefined) return { type: 'adaptive' };
  // The answer needs the rest.
  const budget_tokens = Math.min(budgets[effort] ?? 0, question.maxOutputTokens - 1);
  return budget_tokens < leastBudget ? undefined : { type: 'enabled', budget_tokens };
}

function toOutputConfig(question: Question, efforts: Efforts): JsonObject | undefined {
  const { schema } = question;
  const effort = Array.isArray(efforts) ? effortOf(question) : undefined;
  if (effort === undefined && schema === undefined) return undefined;
  return {
    ...(effort === undefined ? {} : { effort }),
    ...(schema === undefined ? {} : { format: { type: 'json_schema', schema } }),
  };
}

function toBody(question: Question, { model, reasoning_effort: efforts }: AnthropicOptions): JsonObject {
  const { system, messages, tools, input } = question;
  const { stop } = input;
  const thinking = toThinking(question, efforts);
  // A model that thinks refuses both.
  const { temperature, top_p } = thinking === undefined ? input : {};
  const fields = {
    model,
    max_tokens: question.maxOutputTokens,
    system: system === '' ? undefined : system,
    messages: toTurns(messages),
    tools: tools.length === 0 ? undefined : tools.map(toWireTool),
    tool_choice: tools.length === 0 ? undefined : toWireChoice(question.toolChoice),
    temperature: temperature === undefined ? undefined : Math.min(temperature, 1),
    // Newer models refuse both.
    top_p: temperature === undefined ? top_p : undefined,
    stop_sequences: stop,
    thinking,
    output_config: toOutputConfig(question, efforts),
    stream: true,
  };
  return fields as unknown as JsonObject;
}

/** The blocks of an answer: what each began with, until a piece of it comes. */
function createBlocks(answer: GrowingAnswer) {
  const begun = new Map<number, string>();
  return {
    begin: (index: number, block: Json | undefined): void => {
      answer.text(fieldOf(block, 'type') === 'text' ? textField(block, 'text') : '');
      if (fieldOf(block, 'type') !== 'tool_use') return;
      answer.tool({ index, id: textField(block, 'id'), name: textField(block, 'name'), written: '' });
      const input = fieldOf(block, 'input');
      if (isPlainObject(input) && Object.keys(input).length > 0) begun.set(index, writeExactJson(input));
    },
    grow: (index: number, delta: Json | undefined): void => {
      answer.text(fieldOf(delta, 'type') === 'text_delta' ? textField(delta, 'text') : '');
      if (fieldOf(delta, 'type') !== 'input_json_delta') return;
      const written = argumentsOf(fieldOf(delta, 'partial_json'));
      if (written !== '') begun.delete(index);
      answer.tool({ index, id: '', name: '', written });
    },
    end: (index: number): void => {
      const written = begun.get(index);
      if (written !== undefined) answer.tool({ index, id: '', name: '', written });
      begun.delete(index);
    },
  };
}

interface MessageParts {
  readonly answer: GrowingAnswer;
  readonly blocks: ReturnType<typeof createBlocks>;
}

function takeEnd(answer: GrowingAnswer, said: Json | undefined, usage: Json | undefined): void {
  const reason = textField(said, 'stop_reason');
  if (reason !== '') answer.finish(reason);
  const stop = textField(said, 'stop_sequence');
  if (stop !== '') answer.stop(stop);
  answer.usage(readAnthropicUsage(usage), 'part');
}

function takeBlockEvent(event: JsonObject, type: string, { blocks }: MessageParts): void {
  const index = Number(event.index ?? 0);
  if (type === 'content_block_start') blocks.begin(index, event.content_block);
  if (type === 'content_block_delta') blocks.grow(index, event.delta);
  if (type === 'content_block_stop') blocks.end(index);
}

/** @returns true for the last event */
function takeEvent(event: JsonObject, type: string, parts: MessageParts): boolean {
  const { answer } = parts;
  switch (type) {
    case 'message_start':
      answer.model(textField(event.message, 'model'));
      answer.usage(readAnthropicUsage(fieldOf(event.message, 'usage')), 'part');
      return false;
    case 'message_delta':
      takeEnd(answer, event.delta, event.usage);
      return false;
    case 'message_stop':
      return true;
    case 'error':
      answer.fail(
        readProviderError(event) ?? unnamedError,
        event.usage === undefined ? undefined : readAnthropicUsage(event.usage),
      );
      return true;
    default:
      takeBlockEvent(event, type, parts);
      return false;
  }
}

function createReader(answer: GrowingAnswer): AnswerReader {
  const parts: MessageParts = { answer, blocks: createBlocks(answer) };
  return {
    event: ({ name, data }) =>
      name !== 'ping' &&
      readObjects(data).some((event) => takeEvent(event, textField(event, 'type') || name, parts)),
    whole: (message) => {
      const { content = null, error = null } = message;
      if (error !== null) return takeEvent(message, 'error', parts);
      if (!isList(content)) return false;
      answer.model(textField(message, 'model'));
      for (const [index, block] of content.entries()) {
        parts.blocks.begin(index, block);
        parts.blocks.end(index);
      }
      takeEnd(answer, message, message.usage);
      return true;
    },
  };
}

export function createAnthropicMessages(options: AnthropicOptions): ModelProtocol {
  const { token } = options;
  const key: Record<string, string> = token === undefined ? {} : { 'x-api-key': token };
  return {
    path: '/messages',
    readUsage: readAnthropicUsage,
    headers: { ...key, 'anthropic-version': '2023-06-01' },
    toBody: (question) => toBody(question, options),
    createReader,
  };
}
