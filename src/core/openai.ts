/**
 * OpenAI's chat completions and embeddings in the form of calls of `model.…` and `embed.…`, and back. Fields that the caller leaves out stay out, so
 * that the schema of an instance refuses only what was asked of it.
 */
import type {
  ChatCompletion,
  ChatRequest,
  ChatUsage,
  EmbeddingResult,
  EmbeddingsAnswer,
  EmbeddingsRequest,
  FinishReason,
  ModelResult,
} from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isPlainObject } from './json/values.ts';

/** Fields of an answer that programs send back with the conversation, and that say nothing when they are empty. */
const echoed: ReadonlySet<string> = new Set(['refusal', 'annotations', 'audio', 'function_call', 'name']);

function isEmpty(value: Json | undefined): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
}

function withoutEmpty(message: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(message).filter(
      ([key, value]) => !(echoed.has(key) || key === 'tool_calls') || !isEmpty(value),
    ),
  );
}

function schemaOf({ response_format: format }: ChatRequest): JsonObject | undefined {
  if (format?.type === 'json_schema') return format.json_schema.schema;
  return format?.type === 'json_object' ? { type: 'object' } : undefined;
}

function choiceOf({ tool_choice: choice }: ChatRequest): Json | undefined {
  return typeof choice === 'object' ? { name: choice.function.name } : choice;
}

/** The input of a call of `model.…`. */
export function toModelInput(request: ChatRequest): JsonObject {
  const { stop, tools } = request;
  const fields: Record<string, Json | null | undefined> = {
    messages: request.messages.map(withoutEmpty),
    response_schema: schemaOf(request),
    tools: tools?.map(({ function: { strict: _, ...tool } }) => tool as JsonObject),
    tool_choice: choiceOf(request),
    max_output_tokens: request.max_completion_tokens ?? request.max_tokens,
    temperature: request.temperature,
    top_p: request.top_p,
    presence_penalty: request.presence_penalty,
    frequency_penalty: request.frequency_penalty,
    stop: typeof stop === 'string' ? [stop] : stop,
    seed: request.seed,
  };
  return Object.fromEntries(
    Object.entries(fields).filter(
      (field): field is [string, Json] => field[1] !== undefined && field[1] !== null,
    ),
  );
}

/** The text of an answer: JSON where the caller asked for it. Null: the model calls tools and says nothing. */
function contentOf({ text, json }: ModelResult): string | null {
  return text ?? (json === undefined ? null : JSON.stringify(json));
}

function finishOf({ finish_reason, tool_calls }: ModelResult): FinishReason {
  switch (finish_reason) {
    case 'length':
    case 'content_filter':
    case 'tool_calls':
      return finish_reason;
    default:
      return tool_calls === undefined ? 'stop' : 'tool_calls';
  }
}

/** @param costUsd what the call cost */
function usageOf({ usage }: ModelResult, costUsd: number): ChatUsage {
  const prompt_tokens = usage?.input_tokens ?? 0;
  const completion_tokens = usage?.output_tokens ?? 0;
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    cost_usd: costUsd,
  };
}

/** What all parts of one answer have in common. */
export interface ChatHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** As the caller named it. */
  readonly model: string;
}

export function toCompletion(head: ChatHead, result: ModelResult, costUsd: number): ChatCompletion {
  const { tool_calls } = result;
  const message = {
    role: 'assistant' as const,
    content: contentOf(result),
    refusal: null,
    ...(tool_calls === undefined ? {} : { tool_calls }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishOf(result) };
  return {
    ...head,
    object: 'chat.completion',
    model: result.model ?? head.model,
    choices: [choice],
    usage: usageOf(result, costUsd),
  };
}

function toChunk(head: ChatHead, delta: JsonObject, finish: FinishReason | null = null): JsonObject {
  const choice = { index: 0, delta, logprobs: null, finish_reason: finish };
  return { ...head, object: 'chat.completion.chunk', choices: [choice] };
}

/** The first chunk of a stream, before the answer begins. */
export function openingChunk(head: ChatHead): JsonObject {
  return toChunk(head, { role: 'assistant', content: '' });
}

/** @param delta as an instance passes it on; null when it says nothing that OpenAI's stream has a place for */
export function deltaChunk(head: ChatHead, delta: Json): JsonObject | null {
  if (typeof delta === 'string') return toChunk(head, { content: delta });
  if (!isPlainObject(delta)) return null;
  const { content, tool_calls } = delta;
  const known = {
    ...(typeof content === 'string' ? { content } : {}),
    ...(Array.isArray(tool_calls) ? { tool_calls } : {}),
  };
  return Object.keys(known).length === 0 ? null : toChunk(head, known);
}

/** The whole answer as one delta, of an instance that passed on no part of it. */
export function wholeDelta(result: ModelResult): JsonObject {
  const { tool_calls } = result;
  const content = contentOf(result);
  return {
    ...(content === null ? {} : { content }),
    ...(tool_calls === undefined
      ? {}
      : { tool_calls: tool_calls.map((call, index) => ({ index, ...call })) }),
  };
}

/** The last chunks of a stream. @param includesUsage the caller asked for usage */
export function closingChunks(
  head: ChatHead,
  result: ModelResult,
  { costUsd, includesUsage }: { readonly costUsd: number; readonly includesUsage: boolean },
): JsonObject[] {
  const last = toChunk(head, {}, finishOf(result));
  if (!includesUsage) return [last];
  const usage = { ...usageOf(result, costUsd) };
  return [last, { ...head, object: 'chat.completion.chunk', choices: [], usage }];
}

/** The input of a call of `embed.…`. */
export function toEmbeddingInput({ input, dimensions }: EmbeddingsRequest): JsonObject {
  const texts = typeof input === 'string' ? [input] : input;
  return { texts, ...(dimensions === undefined || dimensions === null ? {} : { dimensions }) };
}

function toNumbers(vector: string): number[] {
  const bytes = Uint8Array.from(atob(vector), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) => view.getFloat32(index * 4, true));
}

/** @param costUsd what the call cost */
export function toEmbeddings(
  { encoding_format, model: asked }: EmbeddingsRequest,
  { embeddings, model = asked, usage }: EmbeddingResult,
  costUsd: number,
): EmbeddingsAnswer {
  const tokens = usage?.input_tokens ?? 0;
  const data = embeddings.map((vector, index) => ({
    object: 'embedding' as const,
    index,
    embedding: encoding_format === 'base64' ? vector : toNumbers(vector),
  }));
  return {
    object: 'list',
    data,
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens, cost_usd: costUsd },
  };
}
