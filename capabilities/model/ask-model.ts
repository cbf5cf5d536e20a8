/**
 * One streamed question to a provider, never repeated: retries belong to Capstan. The provider's own stream is read:
 * what the AI SDK puts around it takes several times as long as the call. The connection is closed when the signal
 * aborts.
 */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { type Message, type ToolCall, toPrompt } from './messages.ts';
import type { ProviderModel, ProviderOptions, StreamPart } from './provider-types.ts';

/** A function that the model may call; the caller executes it. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of its arguments. */
  readonly parameters?: JsonObject | undefined;
}

export interface Question {
  readonly system: string;
  /** Without the system message. */
  readonly messages: readonly Message[];
  readonly tools: readonly OfferedTool[];
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string } | undefined;
  /** Asks the provider for JSON of this schema. */
  readonly json?: { readonly schema: JsonObject } | undefined;
  readonly maxOutputTokens: number;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly stopSequences?: string[] | undefined;
  readonly seed?: number | undefined;
}

export interface ModelAnswer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** The provider's name for it. */
  readonly model: string;
  /** The text of `stopSequences` that ended it; null when the provider does not report it. */
  readonly stopSequence: string | null;
  readonly finishReason: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
  /** Null when the provider does not report it. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** A piece of the answer, as OpenAI streams it. */
export interface AnswerDelta {
  readonly content?: string;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly type?: 'function';
    readonly function: { readonly name?: string; readonly arguments: string };
  }[];
}

type FunctionTool = Extract<NonNullable<ProviderOptions['tools']>[number], { type: 'function' }>;

function toFunctions(tools: readonly OfferedTool[]): FunctionTool[] | undefined {
  if (tools.length === 0) return undefined;
  return tools.map(({ name, description, parameters }) => {
    const inputSchema = (parameters ?? { type: 'object', properties: {} }) as FunctionTool['inputSchema'];
    return { type: 'function', name, inputSchema, ...(description === undefined ? {} : { description }) };
  });
}

function toChoice(choice: Question['toolChoice'] = 'auto'): ProviderOptions['toolChoice'] {
  return typeof choice === 'object' ? { type: 'tool', toolName: choice.name } : { type: choice };
}

/** A list without a tool has no choice. */
function toOptions({ system, messages, json, tools, toolChoice, ...settings }: Question): ProviderOptions {
  return {
    ...settings,
    prompt: [...(system === '' ? [] : [{ role: 'system' as const, content: system }]), ...toPrompt(messages)],
    responseFormat:
      json === undefined ? undefined : { type: 'json', schema: json.schema as FunctionTool['inputSchema'] },
    tools: toFunctions(tools),
    toolChoice: tools.length === 0 ? undefined : toChoice(toolChoice),
  };
}

export interface QuestionTerms {
  readonly signal: AbortSignal;
  /** Receives each piece of the answer when it comes. */
  readonly onDelta: (delta: AnswerDelta) => void;
}

/** @throws whatever the provider or the connection did, as the AI SDK reports it */
export type AskProvider = (question: Question, asking: QuestionTerms) => Promise<ModelAnswer>;

export async function askModel(
  model: ProviderModel,
  question: Question,
  { signal, onDelta }: QuestionTerms,
): Promise<ModelAnswer> {
  const { stream } = await model.doStream({ ...toOptions(question), abortSignal: signal });
  return collect(stream, model.modelId, onDelta);
}

/** Puts the calls of tools together from the pieces in which they come, and passes the pieces on. */
export function createToolCalls(onDelta: (delta: AnswerDelta) => void) {
  const calls = new Map<string, ToolCall>();
  return {
    begin: (id: string, name: string): void => {
      const index = calls.size;
      calls.set(id, { id, type: 'function', function: { name, arguments: '' } });
      onDelta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
    },
    grow: (id: string, written: string): void => {
      const call = calls.get(id);
      if (call === undefined) return;
      call.function.arguments += written;
      const index = [...calls.keys()].indexOf(id);
      onDelta({ tool_calls: [{ index, function: { arguments: written } }] });
    },
    has: (id: string): boolean => calls.has(id),
    list: (): ToolCall[] => [...calls.values()],
  };
}

function endOf({ usage, providerMetadata }: Extract<StreamPart, { type: 'finish' }>) {
  const stop = providerMetadata?.anthropic?.stopSequence;
  const stopSequence = typeof stop === 'string' ? stop : null;
  return {
    stopSequence,
    inputTokens: usage.inputTokens.total ?? null,
    outputTokens: usage.outputTokens.total ?? null,
  };
}

async function collect(
  stream: ReadableStream<StreamPart>,
  askedModel: string,
  onDelta: (delta: AnswerDelta) => void,
): Promise<ModelAnswer> {
  let text = '';
  let model = askedModel;
  const calls = createToolCalls(onDelta);
  for await (const part of stream) {
    switch (part.type) {
      case 'error':
        throw part.error;
      case 'response-metadata':
        model = part.modelId ?? model;
        break;
      case 'text-delta':
        text += part.delta;
        if (part.delta !== '') onDelta({ content: part.delta });
        break;
      case 'tool-input-start':
        calls.begin(part.id, part.toolName);
        break;
      case 'tool-input-delta':
        calls.grow(part.id, part.delta);
        break;
      case 'tool-call':
        if (calls.has(part.toolCallId)) break;
        // Some providers write the arguments at once.
        calls.begin(part.toolCallId, part.toolName);
        calls.grow(part.toolCallId, part.input);
        break;
      case 'finish': {
        const { raw, unified: finishReason } = part.finishReason;
        if (raw === undefined) break;
        return { text, toolCalls: calls.list(), model, finishReason, ...endOf(part) };
      }
    }
  }
  throw new Error('the stream ended before the answer was complete');
}
