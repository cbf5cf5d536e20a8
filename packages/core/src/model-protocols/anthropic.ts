/** The result of a call of `model.…` as a message of Anthropic's, whole or as events. */

import type { MessageStop, MessageUsage, ModelMessage } from '../contracts/anthropic.ts';
import { parseExactJson } from '../contracts/exact-json.ts';
import type { FinishReason, ModelResult } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { createGrowingObject, type GrowingObject } from '../json/growing-object.ts';
import { isPlainObject } from '../json/values.ts';
import { type AnswerWriter, contentOf, finishOf, readDelta, toEvent } from './model-answer.ts';

const stopReasons: Readonly<Record<FinishReason, MessageStop>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
  tool_calls: 'tool_use',
};

/** Only some models report which text of `stop` ended the answer; for others it is a normal end. */
function stopOf(result: ModelResult): Pick<ModelMessage, 'stop_reason' | 'stop_sequence' | 'stop_details'> {
  const finish = finishOf(result);
  const { stop_sequence = null } = result;
  return finish === 'stop' && stop_sequence !== null
    ? { stop_reason: 'stop_sequence', stop_sequence, stop_details: null }
    : { stop_reason: stopReasons[finish], stop_sequence: null, stop_details: null };
}

/** What all parts of one answer have in common. */
export interface MessageHead {
  readonly id: string;
  /** As the caller named it. */
  readonly model: string;
}

/** Fields that Anthropic's answers always have, and that programs with strict types read. */
const usualUsage = {
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: null,
  server_tool_use: null,
  service_tier: null,
  inference_geo: null,
  output_tokens_details: null,
};
const usualMessage = { container: null, context_management: null };

/** Anthropic counts the tokens of its cache beside the others. */
function usageOf({ usage }: ModelResult, costUsd: number): MessageUsage {
  const read = usage?.cached_read_tokens ?? 0;
  const write = usage?.cached_write_tokens ?? 0;
  return {
    ...usualUsage,
    input_tokens: Math.max(0, (usage?.input_tokens ?? 0) - read - write),
    cache_creation_input_tokens: write,
    cache_read_input_tokens: read,
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
  const { reasoning = '', tool_calls = [] } = result;
  const calls = tool_calls.map(({ id, function: { name, arguments: written } }) => ({
    type: 'tool_use' as const,
    id,
    name,
    input: readArguments(written),
  }));
  const thoughts = { type: 'thinking' as const, thinking: reasoning, signature: '' };
  return {
    id: head.id,
    type: 'message',
    role: 'assistant',
    model: result.model ?? head.model,
    content: [
      ...(reasoning === '' ? [] : [thoughts]),
      ...(text === '' ? [] : [{ type: 'text' as const, text, citations: [] }]),
      ...calls,
    ],
    ...stopOf(result),
    ...usualMessage,
    usage: usageOf(result, costUsd),
  };
}

function named(type: string, data: JsonObject): string {
  return toEvent({ type, ...data }, type);
}

/** A block of an answer while it is written. */
interface AnswerBlock {
  readonly kind: 'text' | 'thinking' | 'tool';
  /** Of a call of a tool, by its pieces. */
  readonly at: number;
  readonly head: JsonObject;
  /** Of a call of a tool. */
  readonly written: GrowingObject;
  /** What is not sent yet. */
  unsent: string;
}

/** A text never continues behind another block. A call of a tool does, until its arguments are whole. */
function isWhole({ kind, written }: AnswerBlock): boolean {
  return kind !== 'tool' || written.isWhole();
}

function deltaOf({ kind }: AnswerBlock, text: string): JsonObject {
  if (kind === 'text') return { type: 'text_delta', text };
  return kind === 'thinking'
    ? { type: 'thinking_delta', thinking: text }
    : { type: 'input_json_delta', partial_json: text };
}

interface Blocks {
  /** Events by which a text grows. */
  text(kind: 'text' | 'thinking', content: string): string[];
  /** Events by which a call of a tool grows. @param piece in OpenAI's form */
  tool(piece: JsonObject): string[];
  end(): string[];
}

/** The blocks of one answer; those before `open` are written, and `open` may have begun. */
interface BlockQueue {
  readonly blocks: AnswerBlock[];
  open: number;
  hasBegun: boolean;
}

function addBlock({ blocks }: BlockQueue, begun: Pick<AnswerBlock, 'kind' | 'at' | 'head'>): AnswerBlock {
  const block = { ...begun, written: createGrowingObject(), unsent: '' };
  blocks.push(block);
  return block;
}

/** Events by which the open block grows by what is not sent yet. */
function writeOpen(queue: BlockQueue, block: AnswerBlock): string[] {
  const { open: index, hasBegun } = queue;
  const events = hasBegun ? [] : [named('content_block_start', { index, content_block: block.head })];
  queue.hasBegun = true;
  const { unsent: text } = block;
  block.unsent = '';
  if (text !== '') events.push(named('content_block_delta', { index, delta: deltaOf(block, text) }));
  return events;
}

/** Writes what may be written now; at the end everything. */
function writeQueue(queue: BlockQueue, isEnd: boolean): string[] {
  const { blocks } = queue;
  const events: string[] = [];
  for (let block = blocks[queue.open]; block !== undefined; block = blocks[queue.open]) {
    events.push(...writeOpen(queue, block));
    const mayClose = isEnd || (queue.open < blocks.length - 1 && isWhole(block));
    if (!mayClose) break;
    events.push(named('content_block_stop', { index: queue.open }));
    queue.open += 1;
    queue.hasBegun = false;
  }
  return events;
}

/**
 * The blocks of one answer. The protocol writes one after the other, and a model may write several in parallel: pieces of
 * a later block are held back until the blocks before it are whole, at the latest until the end.
 */
function createBlocks(): Blocks {
  const queue: BlockQueue = { blocks: [], open: 0, hasBegun: false };
  const { blocks } = queue;
  return {
    text: (kind, content) => {
      if (content === '') return [];
      const last = blocks.at(-1);
      const empty: JsonObject =
        kind === 'text' ? { text: '', citations: [] } : { thinking: '', signature: '' };
      const block =
        last?.kind === kind ? last : addBlock(queue, { kind, at: -1, head: { type: kind, ...empty } });
      block.unsent += content;
      return writeQueue(queue, false);
    },
    tool: ({ index, id, function: called = null }) => {
      const at = Number(index) || 0;
      const { name = '', arguments: written = '' } = isPlainObject(called) ? called : {};
      const known = blocks.findLast((block) => block.kind === 'tool' && block.at === at);
      const head = { type: 'tool_use', id: id ?? '', name, input: {} };
      const block = known ?? addBlock(queue, { kind: 'tool', at, head });
      const piece = typeof written === 'string' ? written : '';
      block.unsent += piece;
      block.written.add(piece);
      return writeQueue(queue, false);
    },
    end: () => writeQueue(queue, true),
  };
}

/**
 * Writes a stream of events.
 * @param countInput estimates the tokens of the input, which are known at the end only
 */
export function createMessageWriter(head: MessageHead, countInput: () => number): AnswerWriter {
  const blocks = createBlocks();
  return {
    open: () => {
      const usage = { input_tokens: countInput(), output_tokens: 0, ...usualUsage };
      const end = { stop_reason: null, stop_sequence: null, stop_details: null };
      const said = { content: [], ...end, ...usualMessage, usage };
      return [named('message_start', { message: { type: 'message', role: 'assistant', ...head, ...said } })];
    },
    part: (delta) => {
      const { content, reasoning, toolCalls } = readDelta(delta);
      return [
        ...blocks.text('thinking', reasoning ?? ''),
        ...blocks.text('text', content ?? ''),
        ...toolCalls.flatMap(blocks.tool),
      ];
    },
    close: (result, costUsd) => {
      const delta = { ...stopOf(result), container: null };
      const usage = { ...usageOf(result, costUsd) };
      return [...blocks.end(), named('message_delta', { delta, usage }), named('message_stop', {})];
    },
    keepAlive: named('ping', {}),
    fail: (error) => [toEvent(error, 'error')],
  };
}
