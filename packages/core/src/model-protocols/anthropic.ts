/** Anthropic's messages in the form of calls of `model.…`, and back. */

import type {
  MessageStop,
  MessagesRequest,
  MessageUsage,
  ModelMessage,
  PartBlock,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
  Turn,
} from '../contracts/anthropic.ts';
import { parseExactJson, writeExactJson } from '../contracts/exact-json.ts';
import type { FinishReason, ModelResult } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isPlainObject } from '../json/values.ts';
import { type AnswerWriter, contentOf, finishOf, readDelta, toEvent, withoutAbsent } from './model-answer.ts';

function textOf(content: string | readonly TextBlock[]): string {
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('');
}

function toDataUrl({ media_type, data }: { readonly media_type: string; readonly data: string }): string {
  return `data:${media_type};base64,${data}`;
}

function toPart(block: PartBlock): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'image': {
      const { source } = block;
      return {
        type: 'image_url',
        image_url: { url: source.type === 'url' ? source.url : toDataUrl(source) },
      };
    }
    case 'document': {
      const { source, title } = block;
      if (source.type === 'text') return { type: 'text', text: source.data };
      return { type: 'file', file: withoutAbsent({ file_data: toDataUrl(source), filename: title }) };
    }
  }
}

function isText(block: PartBlock): block is TextBlock {
  return block.type === 'text';
}

/** A message of a tool holds texts only, so the other parts of its result follow as the user's. */
function splitResult({ tool_use_id, content = '', is_error }: ToolResultBlock) {
  const blocks = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
  const text = textOf(blocks.filter(isText));
  const told = is_error === true ? `Error: ${text}` : text;
  return {
    message: { role: 'tool', tool_call_id: tool_use_id, content: told },
    parts: blocks.filter((block) => !isText(block)).map(toPart),
  };
}

function toUserMessages(content: Extract<Turn, { role: 'user' }>['content']): JsonObject[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  const messages: JsonObject[] = [];
  const parts: JsonObject[] = [];
  for (const block of content) {
    if (block.type !== 'tool_result') parts.push(toPart(block));
    else {
      const result = splitResult(block);
      messages.push(result.message);
      parts.push(...result.parts);
    }
  }
  return parts.length === 0 ? messages : [...messages, { role: 'user', content: parts }];
}

function toAssistantMessage(content: Extract<Turn, { role: 'assistant' }>['content']): JsonObject {
  if (typeof content === 'string') return { role: 'assistant', content };
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('');
  const calls = content.flatMap((block) => (block.type === 'tool_use' ? [toToolCall(block)] : []));
  return {
    role: 'assistant',
    ...(text === '' ? {} : { content: text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function toToolCall({ id, name, input }: ToolUseBlock): JsonObject {
  return { id, type: 'function', function: { name, arguments: writeExactJson(input) } };
}

function toChatMessages(turn: Turn): JsonObject[] {
  switch (turn.role) {
    case 'user':
      return toUserMessages(turn.content);
    case 'assistant':
      return [toAssistantMessage(turn.content)];
    case 'system':
      return [{ role: 'system', content: textOf(turn.content) }];
  }
}

function choiceOf({ tool_choice: choice }: MessagesRequest): Json | undefined {
  if (choice === null || choice === undefined) return undefined;
  if (choice.type === 'tool') return { name: choice.name };
  return choice.type === 'any' ? 'required' : choice.type;
}

/** The input of a call of `model.…`. */
export function toMessagesInput(request: MessagesRequest): JsonObject {
  const { system = '', messages, tools, output_config } = request;
  const rules = textOf(system);
  return withoutAbsent({
    messages: [
      ...(rules === '' ? [] : [{ role: 'system', content: rules }]),
      ...messages.flatMap(toChatMessages),
    ],
    response_schema: output_config?.format?.schema,
    tools: tools?.map(({ name, description, input_schema }) =>
      withoutAbsent({ name, description, parameters: input_schema }),
    ),
    tool_choice: choiceOf(request),
    max_output_tokens: request.max_tokens,
    temperature: request.temperature,
    top_p: request.top_p,
    stop: request.stop_sequences?.length === 0 ? null : request.stop_sequences,
  });
}

const stopReasons: Readonly<Record<FinishReason, MessageStop>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
  tool_calls: 'tool_use',
};

/** Only some models report which text of `stop` ended the answer; for others it is a normal end. */
function stopOf(result: ModelResult): Pick<ModelMessage, 'stop_reason' | 'stop_sequence'> {
  const finish = finishOf(result);
  const { stop_sequence = null } = result;
  return finish === 'stop' && stop_sequence !== null
    ? { stop_reason: 'stop_sequence', stop_sequence }
    : { stop_reason: stopReasons[finish], stop_sequence: null };
}

/** What all parts of one answer have in common. */
export interface MessageHead {
  readonly id: string;
  /** As the caller named it. */
  readonly model: string;
}

function usageOf({ usage }: ModelResult, costUsd: number): MessageUsage {
  return {
    input_tokens: usage?.input_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
    cost_usd: costUsd,
  };
}

/** A model may write arguments that are no JSON object; Anthropic's guide wraps them like this. */
function readArguments(written: string): JsonObject {
  if (written === '') return {};
  try {
    const value = parseExactJson(written);
    if (isPlainObject(value as Json)) return value as JsonObject;
  } catch {
    // reported below
  }
  return { INVALID_JSON: written };
}

export function toMessage(head: MessageHead, result: ModelResult, costUsd: number): ModelMessage {
  const text = contentOf(result) ?? '';
  const calls = (result.tool_calls ?? []).map(({ id, function: { name, arguments: written } }) => ({
    type: 'tool_use' as const,
    id,
    name,
    input: readArguments(written),
  }));
  return {
    id: head.id,
    type: 'message',
    role: 'assistant',
    model: result.model ?? head.model,
    content: [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls],
    ...stopOf(result),
    usage: usageOf(result, costUsd),
  };
}

function named(type: string, data: JsonObject): string {
  return toEvent({ type, ...data }, type);
}

interface Blocks {
  /** Events by which a text grows. */
  text(content: string): string[];
  /** Events by which a call of a tool grows. @param piece in OpenAI's form */
  tool(piece: JsonObject): string[];
  end(): string[];
}

/** The blocks of one answer: each begins when the first part of it comes, and ends with the next one. */
function createBlocks(): Blocks {
  let count = 0;
  let open: number | 'text' | null = null;
  const places = new Map<number, number>();
  const end = (): string[] => {
    if (open === null) return [];
    const index = open === 'text' ? count - 1 : (places.get(open) ?? 0);
    open = null;
    return [named('content_block_stop', { index })];
  };
  const begin = (block: JsonObject): string => {
    count += 1;
    return named('content_block_start', { index: count - 1, content_block: block });
  };
  const grow = (index: number, delta: JsonObject): string => named('content_block_delta', { index, delta });
  return {
    text: (text) => {
      if (text === '') return [];
      const events = open === 'text' ? [] : [...end(), begin({ type: 'text', text: '' })];
      open = 'text';
      return [...events, grow(count - 1, { type: 'text_delta', text })];
    },
    tool: ({ index, id, function: called = null }) => {
      const at = Number(index) || 0;
      const { name = '', arguments: written = '' } = isPlainObject(called) ? called : {};
      const events: string[] = [];
      if (!places.has(at)) {
        events.push(...end(), begin({ type: 'tool_use', id: id ?? '', name, input: {} }));
        places.set(at, count - 1);
        open = at;
      }
      const place = places.get(at) ?? 0;
      if (written !== '') events.push(grow(place, { type: 'input_json_delta', partial_json: written }));
      return events;
    },
    end,
  };
}

/** Writes a stream of events. */
export function createMessageWriter(head: MessageHead): AnswerWriter {
  const blocks = createBlocks();
  return {
    open: () => {
      const usage = { input_tokens: 0, output_tokens: 0 };
      const said = { content: [], stop_reason: null, stop_sequence: null, usage };
      return [named('message_start', { message: { type: 'message', role: 'assistant', ...head, ...said } })];
    },
    part: (delta) => {
      const { content, toolCalls } = readDelta(delta);
      return [...blocks.text(content ?? ''), ...toolCalls.flatMap(blocks.tool)];
    },
    close: (result, costUsd) => {
      const delta = { ...stopOf(result) };
      const usage = { ...usageOf(result, costUsd) };
      return [...blocks.end(), named('message_delta', { delta, usage }), named('message_stop', {})];
    },
    fail: (error) => [toEvent(error, 'error')],
  };
}
