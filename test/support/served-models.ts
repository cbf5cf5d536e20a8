/** Instances of the sample `model`, on the scripted provider of a test and the router of its API. */

import type { RunningInstance } from '@capstan/capability';
import { readModelSettings } from '../../capabilities/model/configuration.ts';
import { defineEmbedding } from '../../capabilities/model/define-embedding.ts';
import { defineModel } from '../../capabilities/model/define-model.ts';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import type { TestApi } from './api.ts';
import type { ModelServer } from './model-server.ts';

interface ServedModels {
  /** The router knows it when this resolves. @param more settings of the instance */
  start(name: string, more?: Record<string, string>): Promise<RunningInstance>;
  stop(): Promise<void>;
}

/** @param sharedWith other projects than that of the key */
export function createServedModels(
  api: Pick<TestApi, 'url' | 'apiKey' | 'waitForInstance'>,
  provider: ModelServer,
  sharedWith: 'all' | 'none' = 'all',
): ServedModels {
  const instances: RunningInstance[] = [];
  return {
    start: async (name, more = {}) => {
      const settings = readModelSettings({
        MODEL_CAPABILITY: name,
        MODEL_PROVIDER: 'openai-compatible',
        MODEL_BASE_URL: provider.url,
        MODEL_NAME: 'small',
        ...more,
      });
      const capability = name.startsWith('embed.') ? defineEmbedding(settings) : defineModel(settings);
      const instance = await serve(capability, {
        ROUTER_URL: api.url,
        ROUTER_TOKEN: api.apiKey,
        ...(sharedWith === 'all' ? { SHARED_WITH: 'all' } : {}),
      });
      instances.push(instance);
      await api.waitForInstance(name, instance.endpoint);
      return instance;
    },
    stop: async () => {
      await Promise.all(instances.map((instance) => instance.stop()));
    },
  };
}
