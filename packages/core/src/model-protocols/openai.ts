/**
 * OpenAI's chat completions and embeddings in the form of calls of `model.…` and `embed.…`, and back. Fields that the
 * caller leaves out stay out, so that the schema of an instance refuses only what was asked of it.
 */
import type {
  ChatCompletion,
  ChatRequest,
  ChatUsage,
  EmbeddingsRequest,
  FinishReason,
  ModelChoice,
  ModelResult,
} from '../contracts/openai.ts';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import {
  type AnswerWriter,
  choicesOf,
  contentOf,
  finishOf,
  readDelta,
  toEvent,
  withoutAbsent,
} from './model-answer.ts';

/** Fields of an answer that programs send back with the conversation, and that mean nothing when they are empty. */
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
  return withoutAbsent({
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
    // One answer is the default, which schemas without the field serve too.
    n: request.n === 1 ? undefined : request.n,
  });
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

function toChoice(choice: ModelChoice, index: number): ChatCompletion['choices'][number] {
  const { tool_calls } = choice;
  const message = {
    role: 'assistant' as const,
    content: contentOf(choice),
    refusal: null,
    ...(tool_calls === undefined ? {} : { tool_calls }),
  };
  return { index, message, logprobs: null, finish_reason: finishOf(choice) };
}

export function toCompletion(head: ChatHead, result: ModelResult, costUsd: number): ChatCompletion {
  const { id, created, model } = head;
  return {
    id,
    object: 'chat.completion',
    created,
    model: result.model ?? model,
    choices: choicesOf(result).map(toChoice),
    usage: usageOf(result, costUsd),
  };
}

interface ChunkHead extends ChatHead {
  readonly object: 'chat.completion.chunk';
}

interface ChatPart {
  /** Of the choice. */
  readonly index: number;
  readonly delta: JsonObject;
  readonly finish?: FinishReason;
}

/** Writes chunks; all of one answer begin alike, so that is written once. */
function createChunks(head: ChunkHead): (part: ChatPart) => string {
  const beginning = JSON.stringify(head).slice(0, -1);
  return ({ index, delta, finish = null }) =>
    `data: ${beginning},"choices":[{"index":${index},"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}]}\n\n`;
}

function toChatDelta(delta: Json): ChatPart | null {
  const { index, content, toolCalls } = readDelta(delta);
  if (toolCalls.length === 0) return content === null ? null : { index, delta: { content } };
  const tool_calls = [...toolCalls];
  return { index, delta: content === null ? { tool_calls } : { content, tool_calls } };
}

/**
 * Writes a stream of chunks. `includesUsage`: a chunk with usage and cost comes last. `choices`: how many answers are
 * asked for.
 */
export function createChatWriter(
  { id, created, model }: ChatHead,
  { includesUsage, choices }: { readonly includesUsage: boolean; readonly choices: number },
): AnswerWriter {
  const head: ChunkHead = { id, object: 'chat.completion.chunk', created, model };
  const toChunk = createChunks(head);
  return {
    open: () =>
      Array.from({ length: choices }, (_, index) =>
        toChunk({ index, delta: { role: 'assistant', content: '' } }),
      ),
    part: (delta) => {
      const part = toChatDelta(delta);
      return part === null ? [] : [toChunk(part)];
    },
    close: (result, costUsd) => {
      const ends = choicesOf(result).map((choice, index) =>
        toChunk({ index, delta: {}, finish: finishOf(choice) }),
      );
      const usage = { ...usageOf(result, costUsd) };
      const { object } = head;
      const last = { id, object, created, model, choices: [], usage };
      return [...ends, ...(includesUsage ? [toEvent(last)] : []), 'data: [DONE]\n\n'];
    },
    fail: (error) => [toEvent(error)],
  };
}

/** The input of a call of `embed.…`. */
export function toEmbeddingInput({ input, dimensions }: EmbeddingsRequest): JsonObject {
  const texts = typeof input === 'string' ? [input] : input;
  return { texts, ...(dimensions === undefined || dimensions === null ? {} : { dimensions }) };
}
