/**
 * An answer of a model while it grows, whatever protocol it comes in. The parts that callers get equal the answer at its
 * end, since both grow by the same pieces.
 */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import {
  failureInAnswer,
  isRefusal,
  providerFailure,
  type StatedError,
} from '../exchange/provider-failure.ts';
import type { EndReason, ToolCall } from './conversation.ts';
import { laterUsage, mergeUsage, toReport, type Usage, unknownUsage, withoutZeros } from './money/usage.ts';
import { createToolCalls, cutText, type ToolPiece } from './tool-calls.ts';

export interface ModelAnswer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** The provider's name for it. */
  readonly model: string;
  /** The text of `stop` that ended it; null when the provider does not name it. */
  readonly stopSequence: string | null;
  readonly finishReason: EndReason;
  readonly usage: Usage;
}

/** Takes parts out of a text while it grows. */
export interface TextFilter {
  /** @returns what callers may get by now */
  take(piece: string): string;
  /** @returns the rest */
  end(): string;
}

export interface GrowingAnswer {
  text(piece: string): void;
  tool(piece: ToolPiece): void;
  model(name: string): void;
  /** The provider's word for how it ended. */
  finish(reason: string): void;
  stop(sequence: string): void;
  /** Replaces what was known, unless it counts nothing; `isPart`: adds what was not. */
  usage(usage: Usage, isPart?: 'part'): void;
  /** An error inside the answer; its usage may still follow. @param usage in the error itself */
  fail(error: StatedError, usage?: Usage): void;
  /** @throws CallFailure when the answer is not whole, or failed */
  end(): ModelAnswer;
}

/** The words of providers, in small letters; others are `other`. */
const finishReasons: Readonly<Record<string, EndReason | 'error'>> = {
  stop: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  completed: 'stop',
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  max_length: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  content_filter: 'content_filter',
  refusal: 'content_filter',
  safety: 'content_filter',
  recitation: 'content_filter',
  blocklist: 'content_filter',
  prohibited_content: 'content_filter',
  tool_calls: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'tool_calls',
  error: 'error',
};

function finishOf(word: string): EndReason | 'error' {
  const known = word.toLowerCase();
  return (Object.hasOwn(finishReasons, known) ? finishReasons[known] : undefined) ?? 'other';
}

interface AnswerHost {
  readonly askedModel: string;
  /** Receives each piece of the answer, in OpenAI's form, small enough to be passed on. */
  readonly tell: (delta: JsonObject) => void;
  readonly hide: (text: string) => string;
  /** Of the text; default: none. */
  readonly filter?: TextFilter | undefined;
}

const brokenOff: StatedError = { status: 502, message: 'an error as the end of the answer' };

interface AnswerState {
  model: string;
  finish: EndReason | 'error' | null;
  stopSequence: string | null;
  usage: Usage;
  error: StatedError | null;
  /** Nothing that counts follows. */
  isCounted: boolean;
}

/**
 * Before its end an answer has used more than it has counted. A refusal in place of an answer has used nothing.
 * @throws CallFailure unless the answer is whole
 */
function requireWhole(
  { model, finish, usage, error, isCounted }: AnswerState,
  { hide, isEmpty }: Pick<AnswerHost, 'hide'> & { readonly isEmpty: boolean },
): EndReason {
  const wrong = finish === 'error' ? (error ?? brokenOff) : error;
  const counts = toReport(withoutZeros(usage, false));
  const isNothing = Object.keys(counts).length === 0;
  const isInPlace = isEmpty && isNothing && model === '' && finish === null;
  const isUnused = isInPlace && wrong !== null && isRefusal(wrong);
  const isKnown = !isNothing && (finish !== null || isCounted);
  const used = isKnown ? { usage: counts } : isUnused ? { cost_usd: 0 } : {};
  if (wrong !== null) throw failureInAnswer(wrong, hide, used);
  if (finish !== null && finish !== 'error') return finish;
  throw providerFailure('provider_unavailable', 'the answer ended before it was complete');
}

/** Sets the facts of an answer beside its content. */
function createFacts(state: AnswerState): Omit<GrowingAnswer, 'text' | 'tool' | 'end'> {
  return {
    model: (name) => {
      state.model ||= name;
    },
    finish: (reason) => {
      state.finish = finishOf(reason);
    },
    stop: (sequence) => {
      state.stopSequence = sequence;
    },
    usage: (counts, isPart) => {
      state.usage = (isPart === undefined ? laterUsage : mergeUsage)(state.usage, counts);
    },
    fail: (error, usage) => {
      state.error ??= error;
      if (usage === undefined) return;
      state.usage = mergeUsage(state.usage, usage);
      state.isCounted = true;
    },
  };
}

export function createModelAnswer({ askedModel, tell, hide, filter }: AnswerHost): GrowingAnswer {
  const calls = createToolCalls(tell);
  const texts: string[] = [];
  const state: AnswerState = {
    model: '',
    finish: null,
    stopSequence: null,
    usage: unknownUsage,
    error: null,
    isCounted: false,
  };
  const growBy = (text: string): void => {
    if (text === '') return;
    texts.push(text);
    for (const content of cutText(text)) tell({ content });
  };
  return {
    text: (piece) => growBy(filter === undefined ? piece : filter.take(piece)),
    tool: (piece) => calls.take(piece),
    ...createFacts(state),
    end: () => {
      const finishReason = requireWhole(state, { hide, isEmpty: texts.length === 0 });
      growBy(filter?.end() ?? '');
      const toolCalls = calls.end();
      const text = texts.join('');
      const usage = withoutZeros(state.usage, text === '' && toolCalls.length === 0);
      const { model, stopSequence } = state;
      return { text, toolCalls, model: model || askedModel, stopSequence, finishReason, usage };
    },
  };
}
