/** The result of a call of `model.…` as a response of OpenAI's, whole or as typed events. */
import type { FinishReason, ModelChoice, ModelResult } from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import type { ModelResponse, ResponsesRequest } from '../contracts/responses.ts';
import { isPlainObject } from '../json/values.ts';
import { type AnswerWriter, commentEvent, contentOf, finishOf, readDelta, toEvent } from './model-answer.ts';
import { type ToolKinds, textField } from './responses-request.ts';

/** All parts of one response have this in common. */
export interface ResponseHead {
  /** The part of ids that belongs to this response. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly request: ResponsesRequest;
  readonly toolKinds: ToolKinds;
}

type ResponseStatus = ModelResponse['status'];

/** Fields that repeat the request, or that no model here has. */
function echoOf({ request }: ResponseHead): JsonObject {
  const { instructions = null, previous_response_id = null, temperature = null, top_p = null } = request;
  const { max_output_tokens = null, metadata = {}, user = null, reasoning, text } = request;
  return {
    background: false,
    instructions,
    max_output_tokens,
    max_tool_calls: null,
    metadata: (metadata ?? {}) as Json,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id,
    reasoning: { effort: reasoning?.effort ?? null, summary: null },
    service_tier: 'default',
    store: request.store ?? true,
    temperature: temperature ?? 1,
    text: { format: (text?.format ?? { type: 'text' }) as Json },
    tool_choice: (request.tool_choice ?? 'auto') as Json,
    tools: (request.tools ?? []) as unknown as Json,
    top_logprobs: 0,
    top_p: top_p ?? 1,
    truncation: 'disabled',
    user,
  };
}

function usageOf({ usage }: ModelResult, costUsd: number): JsonObject {
  const input_tokens = usage?.input_tokens ?? 0;
  const output_tokens = usage?.output_tokens ?? 0;
  return {
    input_tokens,
    input_tokens_details: { cached_tokens: usage?.cached_read_tokens ?? 0 },
    output_tokens,
    output_tokens_details: { reasoning_tokens: usage?.reasoning_tokens ?? 0 },
    total_tokens: input_tokens + output_tokens,
    cost_usd: costUsd,
  };
}

const incomplete: Partial<Record<FinishReason, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

interface ResponseState {
  readonly status: ResponseStatus;
  readonly output?: readonly JsonObject[];
  readonly model?: string | undefined;
  readonly error?: JsonObject | undefined;
  readonly reason?: string | undefined;
  readonly usage?: JsonObject | undefined;
}

function toResponse(head: ResponseHead, state: ResponseState): ModelResponse {
  const { status, output = [], model, error = null, reason, usage = null } = state;
  return {
    id: `resp_${head.id}`,
    object: 'response',
    created_at: head.created,
    status,
    error,
    incomplete_details: reason === undefined ? null : { reason },
    model: model ?? head.request.model,
    output: [...output],
    ...echoOf(head),
    usage,
  };
}

type ItemKind = 'reasoning' | 'message' | 'function_call' | 'custom_tool_call';

/** An item of a response while it grows. */
interface OutputItem {
  readonly kind: ItemKind;
  readonly id: string;
  readonly index: number;
  readonly callId: string;
  readonly name: string;
  readonly namespace?: string;
  text: string;
  isDone: boolean;
}

const prefixes: Readonly<Record<ItemKind, string>> = {
  reasoning: 'rs',
  message: 'msg',
  function_call: 'fc',
  custom_tool_call: 'ctc',
};

/** The text that a model has written as JSON; what it wrote where it is none. */
function readText(written: string): string {
  try {
    const value: unknown = JSON.parse(written);
    const text = isPlainObject(value) ? value[textField] : undefined;
    return typeof text === 'string' ? text : written;
  } catch {
    return written;
  }
}

function textPart(text: string): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function showItem({ kind, id, callId, text, ...called }: OutputItem, isDone: boolean): JsonObject {
  const { name, namespace } = called;
  const tool = { call_id: callId, name, ...(namespace === undefined ? {} : { namespace }) };
  const status = isDone ? 'completed' : 'in_progress';
  switch (kind) {
    case 'reasoning':
      return { type: kind, id, summary: isDone ? [{ type: 'summary_text', text }] : [] };
    case 'message':
      return { type: kind, id, status, role: 'assistant', content: isDone ? [textPart(text)] : [] };
    case 'function_call':
      return { type: kind, id, status, ...tool, arguments: isDone ? text || '{}' : '' };
    case 'custom_tool_call':
      return { type: kind, id, status, ...tool, input: isDone ? readText(text) : '' };
  }
}

type NewItem = Pick<OutputItem, 'kind' | 'namespace'> & Partial<Pick<OutputItem, 'callId' | 'name'>>;

function addItem(items: OutputItem[], { id }: Pick<ResponseHead, 'id'>, added: NewItem): OutputItem {
  const index = items.length;
  const usual = { callId: '', name: '', text: '', isDone: false };
  const item = { ...usual, ...added, id: `${prefixes[added.kind]}_${id}${index}`, index };
  items.push(item);
  return item;
}

/** A call of a tool. @param name as the request gives it, with its namespace */
function callOf(name: string, callId: string, { toolKinds }: ResponseHead): NewItem {
  const { texts, spaces } = toolKinds;
  const kind = texts.has(name) ? 'custom_tool_call' : 'function_call';
  return { kind, callId, name, ...spaces.get(name) };
}

function listItems(head: ResponseHead, choice: ModelChoice): readonly OutputItem[] {
  const items: OutputItem[] = [];
  const add = (added: NewItem, text: string): void => {
    addItem(items, head, added).text = text;
  };
  const text = contentOf(choice) ?? '';
  if (choice.reasoning !== undefined && choice.reasoning !== '') add({ kind: 'reasoning' }, choice.reasoning);
  if (text !== '') add({ kind: 'message' }, text);
  for (const { id: callId, function: called } of choice.tool_calls ?? []) {
    add(callOf(called.name, callId, head), called.arguments);
  }
  return items;
}

function endOf(result: ModelResult, costUsd: number): Omit<ResponseState, 'output'> {
  const reason = incomplete[finishOf(result)];
  const status = reason === undefined ? 'completed' : 'incomplete';
  return { status, reason, model: result.model, usage: usageOf(result, costUsd) };
}

export function toModelResponse(head: ResponseHead, result: ModelResult, costUsd: number): ModelResponse {
  const output = listItems(head, result).map((item) => showItem(item, true));
  return toResponse(head, { ...endOf(result, costUsd), output });
}

/** The message of an answer in the conversation that the next request continues. */
export function toAnswerMessage({ tool_calls, ...choice }: ModelChoice): JsonObject {
  const content = contentOf(choice);
  return {
    role: 'assistant',
    ...(content === null || content === '' ? {} : { content }),
    ...(tool_calls === undefined ? {} : { tool_calls: tool_calls as unknown as Json }),
  };
}

type Emit = (type: string, data: JsonObject) => string;

function placeOf({ id, index }: OutputItem): JsonObject {
  return { item_id: id, output_index: index };
}

function beginItem(emit: Emit, item: OutputItem): string[] {
  const place = placeOf(item);
  const added = emit('response.output_item.added', { output_index: item.index, item: showItem(item, false) });
  switch (item.kind) {
    case 'message':
      return [added, emit('response.content_part.added', { ...place, content_index: 0, part: textPart('') })];
    case 'reasoning': {
      const part = { type: 'summary_text', text: '' };
      return [added, emit('response.reasoning_summary_part.added', { ...place, summary_index: 0, part })];
    }
    default:
      return [added];
  }
}

/** A tool that takes a text gets it when it is whole: until then it is JSON. */
function growItem(emit: Emit, item: OutputItem, delta: string): string[] {
  item.text += delta;
  const place = placeOf(item);
  switch (item.kind) {
    case 'message':
      return [emit('response.output_text.delta', { ...place, content_index: 0, delta, logprobs: [] })];
    case 'reasoning':
      return [emit('response.reasoning_summary_text.delta', { ...place, summary_index: 0, delta })];
    case 'function_call':
      return [emit('response.function_call_arguments.delta', { ...place, delta })];
    case 'custom_tool_call':
      return [];
  }
}

function partEvents(emit: Emit, item: OutputItem): string[] {
  const { text } = item;
  const place = placeOf(item);
  switch (item.kind) {
    case 'message':
      return [
        emit('response.output_text.done', { ...place, content_index: 0, text, logprobs: [] }),
        emit('response.content_part.done', { ...place, content_index: 0, part: textPart(text) }),
      ];
    case 'reasoning': {
      const part = { type: 'summary_text', text };
      return [
        emit('response.reasoning_summary_text.done', { ...place, summary_index: 0, text }),
        emit('response.reasoning_summary_part.done', { ...place, summary_index: 0, part }),
      ];
    }
    case 'function_call': {
      const written = text || '{}';
      return [
        emit('response.function_call_arguments.done', { ...place, name: item.name, arguments: written }),
      ];
    }
    case 'custom_tool_call': {
      const input = readText(text);
      return [
        emit('response.custom_tool_call_input.delta', { ...place, delta: input }),
        emit('response.custom_tool_call_input.done', { ...place, input }),
      ];
    }
  }
}

function endItem(emit: Emit, item: OutputItem): string[] {
  if (item.isDone) return [];
  item.isDone = true;
  const done = { output_index: item.index, item: showItem(item, true) };
  return [...partEvents(emit, item), emit('response.output_item.done', done)];
}

interface Growing {
  readonly items: OutputItem[];
  readonly emit: Emit;
  readonly head: ResponseHead;
}

/** Texts end when another item begins; calls of tools may grow in parallel until the end. */
function growText({ items, emit, head }: Growing, kind: 'message' | 'reasoning', text: string): string[] {
  if (text === '') return [];
  const last = items.at(-1);
  if (last?.kind === kind) return growItem(emit, last, text);
  const ended = endTexts({ items, emit });
  const item = addItem(items, head, { kind });
  return [...ended, ...beginItem(emit, item), ...growItem(emit, item, text)];
}

function endTexts({ items, emit }: Pick<Growing, 'items' | 'emit'>): string[] {
  const texts = items.filter(({ kind }) => kind === 'message' || kind === 'reasoning');
  return texts.flatMap((item) => endItem(emit, item));
}

function createCallGrowth({ items, emit, head }: Growing) {
  const calls = new Map<number, OutputItem>();
  return ({ index, id, function: called = null }: JsonObject): string[] => {
    const at = Number(index) || 0;
    const { name = '', arguments: written = '' } = isPlainObject(called) ? called : {};
    const events: string[] = [];
    let item = calls.get(at);
    if (item === undefined) {
      events.push(...endTexts({ items, emit }));
      item = addItem(items, head, callOf(String(name), String(id ?? ''), head));
      calls.set(at, item);
      events.push(...beginItem(emit, item));
    }
    if (typeof written === 'string' && written !== '') events.push(...growItem(emit, item, written));
    return events;
  };
}

/** Writes a stream of typed events. */
export function createResponseWriter(head: ResponseHead): AnswerWriter {
  const items: OutputItem[] = [];
  const opening = ['response.created', 'response.in_progress'] as const;
  let count = opening.length; // the first part is written before the events that precede it
  const emit: Emit = (type, data) => {
    const sequence_number = count;
    count += 1;
    return toEvent({ type, ...data, sequence_number }, type);
  };
  const growing: Growing = { items, emit, head };
  const growCall = createCallGrowth(growing);
  const state = (status: ResponseStatus, more: Omit<ResponseState, 'status'> = {}): JsonObject => ({
    response: toResponse(head, { status, ...more }) as JsonObject,
  });
  return {
    open: () =>
      opening.map((type, sequence_number) =>
        toEvent({ type, ...state('in_progress'), sequence_number }, type),
      ),
    part: (delta: Json) => {
      const { content, reasoning, toolCalls } = readDelta(delta);
      return [
        ...growText(growing, 'reasoning', reasoning ?? ''),
        ...growText(growing, 'message', content ?? ''),
        ...toolCalls.flatMap(growCall),
      ];
    },
    close: (result, costUsd) => {
      const ended = items.flatMap((item) => endItem(emit, item));
      const { status, ...end } = endOf(result, costUsd);
      const output = items.map((item) => showItem(item, true));
      return [...ended, emit(`response.${status}`, state(status, { ...end, output }))];
    },
    keepAlive: commentEvent,
    fail: ({ error }) => {
      const { code = 'server_error', message = '' } = isPlainObject(error) ? error : {};
      return [emit('response.failed', state('failed', { error: { code, message } }))];
    },
  };
}
