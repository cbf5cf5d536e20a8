/** Instances of wrapped models, on the scripted provider of a test and the router of its API. */

import type { RunningInstance } from '@capstan/capability';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import type { TestApi } from './api.ts';
import type { ModelServer } from './model-server.ts';
import { defineModel, type ModelFile } from './wrapped-models.ts';

interface ServedModels {
  /** The router knows it when this resolves. @param more fields of its file */
  start(name: string, more?: Partial<ModelFile>): Promise<RunningInstance>;
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
      const capability = defineModel({ name, url: provider.url, ...more });
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
