import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { EmbeddingModel } from 'ai';
import { type AskProvider, askModel } from './ask-model.ts';
import { createOpenAiAsk } from './ask-openai.ts';
import type { ModelSettings } from './configuration.ts';
import { hideKey } from './terms.ts';
import { createAnthropicFetch } from './whole-answers.ts';

const anthropicUrl = 'https://api.anthropic.com/v1';

/** Everything is passed explicitly: the AI SDK would read keys and addresses from variables of its own. */
export function createAsk(settings: ModelSettings): AskProvider {
  if (settings.MODEL_PROVIDER === 'openai-compatible') return createOpenAiAsk(settings);
  const { MODEL_BASE_URL: baseURL = anthropicUrl, MODEL_API_KEY: apiKey, MODEL_NAME } = settings;
  const provider = createAnthropic({ baseURL, apiKey, fetch: createAnthropicFetch(hideKey(settings)) });
  const model = provider(MODEL_NAME);
  return (question, asking) => askModel(model, question, asking);
}

/** Of an OpenAI-compatible provider; Anthropic has none. */
export function createEmbeddingModel(settings: ModelSettings): EmbeddingModel {
  const { MODEL_BASE_URL: baseURL = '', MODEL_API_KEY: apiKey, MODEL_NAME } = settings;
  const key = apiKey === undefined ? {} : { apiKey };
  return createOpenAICompatible({ name: 'model', baseURL, ...key }).embeddingModel(MODEL_NAME);
}
