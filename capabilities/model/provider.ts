import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { EmbeddingModel } from 'ai';
import type { ModelSettings } from './configuration.ts';
import { hideKey } from './terms.ts';
import { createAnthropicFetch, createOpenAiFetch } from './whole-answers.ts';

/** A language model of a provider, as the AI SDK has it below its own functions. */
export type ProviderModel = ReturnType<ReturnType<typeof createAnthropic>>;
export type StreamOptions = Parameters<ProviderModel['doStream']>[0];
export type Prompt = StreamOptions['prompt'];
export type StreamPart =
  Awaited<ReturnType<ProviderModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;

const anthropicUrl = 'https://api.anthropic.com/v1';

/** Everything is passed explicitly: the providers would read keys and addresses from variables of their own. */
export function createLanguageModel(settings: ModelSettings): ProviderModel {
  const { MODEL_BASE_URL, MODEL_API_KEY: apiKey, MODEL_NAME, MODEL_TOKEN_LIMIT_FIELD } = settings;
  if (settings.MODEL_PROVIDER === 'anthropic') {
    const baseURL = MODEL_BASE_URL ?? anthropicUrl;
    return createAnthropic({ baseURL, apiKey, fetch: createAnthropicFetch(hideKey(settings)) })(MODEL_NAME);
  }
  const provider = createOpenAICompatible({
    name: 'model',
    baseURL: MODEL_BASE_URL ?? '',
    ...(apiKey === undefined ? {} : { apiKey }),
    includeUsage: true,
    fetch: createOpenAiFetch(hideKey(settings)),
    supportsStructuredOutputs: settings.MODEL_STRUCTURED_OUTPUT === 'json_schema',
    transformRequestBody: ({ max_tokens, ...body }) => ({ ...body, [MODEL_TOKEN_LIMIT_FIELD]: max_tokens }),
  });
  return provider(MODEL_NAME);
}

/** Of an OpenAI-compatible provider; Anthropic has none. */
export function createEmbeddingModel(settings: ModelSettings): EmbeddingModel {
  const { MODEL_BASE_URL: baseURL = '', MODEL_API_KEY: apiKey, MODEL_NAME } = settings;
  const key = apiKey === undefined ? {} : { apiKey };
  return createOpenAICompatible({ name: 'model', baseURL, ...key }).embeddingModel(MODEL_NAME);
}
