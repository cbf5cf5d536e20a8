/**
 * One streamed question to a provider, never repeated: retries belong to Capstan. The connection is closed when the
 * signal aborts, and in any case when this function is left.
 */
import {
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  Output,
  streamText,
  type ToolChoice,
  type ToolSet,
} from 'ai';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import type { ToolCall } from './messages.ts';

/** A function that the model may call; the caller executes it. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of its arguments. */
  readonly parameters?: JsonObject | undefined;
}

export interface Question {
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly OfferedTool[];
  readonly toolChoice?: ToolChoice<ToolSet> | undefined;
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
  /** The text of `stopSequences` that ended it; null when the provider does not say. */
  readonly stopSequence: string | null;
  readonly finishReason: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
  /** Null when the provider does not say. */
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

/** Only the request: what comes back is read as text, and parsed once, when it is complete. */
function askForJson(schema: JsonObject) {
  return {
    ...Output.object({ schema: jsonSchema(schema) }),
    parseCompleteOutput: async () => null,
    parsePartialOutput: async () => undefined,
  };
}

function toToolSet(tools: readonly OfferedTool[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, parameters }) => {
      const inputSchema = jsonSchema(parameters ?? { type: 'object', properties: {} });
      return [name, { inputSchema, ...(description === undefined ? {} : { description }) }];
    }),
  );
}

/**
 * @param onDelta receives each piece of the answer when it comes
 * @throws whatever the provider or the connection did, as the AI SDK reports it
 */
export async function askModel(
  model: LanguageModel,
  question: Question,
  { signal, onDelta }: { readonly signal: AbortSignal; readonly onDelta: (delta: AnswerDelta) => void },
): Promise<ModelAnswer> {
  const left = new AbortController();
  const { system, messages, json, tools, toolChoice, ...settings } = question;
  const { fullStream } = streamText({
    model,
    ...(system === '' ? {} : { system }),
    messages: [...messages],
    ...(json === undefined ? {} : { output: askForJson(json.schema) }),
    ...(tools.length === 0 ? {} : { tools: toToolSet(tools) }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...settings,
    // An address is the provider's to read: this process would reach other networks than the caller.
    experimental_download: async (files) => files.map(() => null),
    maxRetries: 0,
    abortSignal: AbortSignal.any([signal, left.signal]),
    // Strict mode of OpenAI refuses most schemas; the answer is checked here anyway.
    providerOptions: { openaiCompatible: { strictJsonSchema: false } },
    onError: () => {}, // read from the stream below; the default prints it
  });
  try {
    return await collect(fullStream, onDelta);
  } finally {
    left.abort();
  }
}

/** Puts the calls of tools together from the pieces in which they come, and passes the pieces on. */
function createToolCalls(onDelta: (delta: AnswerDelta) => void) {
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

async function collect(
  stream: ReturnType<typeof streamText>['fullStream'],
  onDelta: (delta: AnswerDelta) => void,
): Promise<ModelAnswer> {
  let text = '';
  const calls = createToolCalls(onDelta);
  for await (const part of stream) {
    switch (part.type) {
      case 'error':
        throw part.error;
      case 'text-delta':
        text += part.text;
        if (part.text !== '') onDelta({ content: part.text });
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
        calls.grow(part.toolCallId, JSON.stringify(part.input ?? {}));
        break;
      case 'finish-step': {
        const { response, finishReason, rawFinishReason, usage, providerMetadata } = part;
        if (rawFinishReason === undefined) break;
        const { inputTokens = null, outputTokens = null } = usage;
        const toolCalls = calls.list();
        const stopped = providerMetadata?.anthropic?.stopSequence;
        const stopSequence = typeof stopped === 'string' ? stopped : null;
        const said = { model: response.modelId, finishReason, stopSequence, inputTokens, outputTokens };
        return { text, toolCalls, ...said };
      }
    }
  }
  throw new Error('the stream ended before the answer was complete');
}
