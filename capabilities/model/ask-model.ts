/**
 * One streamed question to a provider, never repeated: retries belong to Capstan. The connection is closed when the
 * signal aborts, and in any case when this function is left.
 */
import { jsonSchema, type LanguageModel, type ModelMessage, Output, streamText } from 'ai';
import type { JsonObject } from '../../src/contracts/primitives.ts';

export interface Question {
  readonly system: string;
  readonly messages: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[];
  /** Asks the provider for JSON of this schema. */
  readonly json?: { readonly schema: JsonObject } | undefined;
  readonly maxOutputTokens: number;
  readonly temperature?: number | undefined;
  readonly seed?: number | undefined;
}

export interface ModelAnswer {
  readonly text: string;
  /** The provider's name for it. */
  readonly model: string;
  readonly finishReason: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
  /** Null when the provider does not say. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Only the request: what comes back is read as text, and parsed once, when it is complete. */
function askForJson(schema: JsonObject) {
  return {
    ...Output.object({ schema: jsonSchema(schema) }),
    parseCompleteOutput: async () => null,
    parsePartialOutput: async () => undefined,
  };
}

/** @throws whatever the provider or the connection did, as the AI SDK reports it */
export async function askModel(
  model: LanguageModel,
  question: Question,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const left = new AbortController();
  const { system, messages, json, maxOutputTokens, temperature, seed } = question;
  const { fullStream } = streamText({
    model,
    ...(system === '' ? {} : { system }),
    messages: messages.map((message): ModelMessage => ({ ...message })),
    ...(json === undefined ? {} : { output: askForJson(json.schema) }),
    maxOutputTokens,
    temperature,
    seed,
    maxRetries: 0,
    abortSignal: AbortSignal.any([signal, left.signal]),
    // Strict mode of OpenAI refuses most schemas; the answer is checked here anyway.
    providerOptions: { openaiCompatible: { strictJsonSchema: false } },
    onError: () => {}, // read from the stream below; the default prints it
  });
  try {
    return await collect(fullStream);
  } finally {
    left.abort();
  }
}

async function collect(stream: ReturnType<typeof streamText>['fullStream']): Promise<ModelAnswer> {
  let text = '';
  for await (const part of stream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'finish-step') {
      const { response, finishReason, rawFinishReason, usage } = part;
      if (rawFinishReason === undefined) break;
      const { inputTokens = null, outputTokens = null } = usage;
      return { text, model: response.modelId, finishReason, inputTokens, outputTokens };
    }
  }
  throw new Error('the stream ended before the answer was complete');
}
