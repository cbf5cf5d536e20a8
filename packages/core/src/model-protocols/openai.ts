/**
 * The results of calls of `model.…` and `embed.…` in the form of OpenAI's chat completions and embeddings.
 */
import type {
  ChatCompletion,
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
  commentEvent,
  contentOf,
  finishOf,
  readDelta,
  toEvent,
  withoutAbsent,
} from './model-answer.ts';

/** @param costUsd what the call cost */
function usageOf({ usage }: ModelResult, costUsd: number): ChatUsage {
  const prompt_tokens = usage?.input_tokens ?? 0;
  const completion_tokens = usage?.output_tokens ?? 0;
  const { cached_read_tokens: cached_tokens, reasoning_tokens } = usage ?? {};
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    ...(cached_tokens == null ? {} : { prompt_tokens_details: { cached_tokens } }),
    ...(reasoning_tokens == null ? {} : { completion_tokens_details: { reasoning_tokens } }),
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
  const { tool_calls, reasoning } = choice;
  const message = {
    role: 'assistant' as const,
    content: contentOf(choice),
    refusal: null,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
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
  const { index, content, reasoning, toolCalls } = readDelta(delta);
  if (toolCalls.length === 0 && reasoning === null)
    return content === null ? null : { index, delta: { content } };
  const tool_calls = toolCalls.length === 0 ? undefined : [...toolCalls];
  return { index, delta: withoutAbsent({ reasoning_content: reasoning, content, tool_calls }) };
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
    keepAlive: commentEvent,
    fail: (error) => [toEvent(error)],
  };
}

/** The input of a call of `embed.…`. */
export function toEmbeddingInput({ input, dimensions }: EmbeddingsRequest): JsonObject {
  const texts = typeof input === 'string' ? [input] : input;
  return { texts, ...(dimensions === undefined || dimensions === null ? {} : { dimensions }) };
}
