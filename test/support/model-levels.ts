/** Levels of the ladder for tests: the capability of every level, in front of one scripted provider. */
import type { RunningInstance } from '@capstan/capability';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import type { ModelRequest, ModelServer } from './model-server.ts';
import type { SharedCapstan } from './shared-capstan.ts';
import { defineModel, priceAt } from './wrapped-models.ts';

/** The prompt as the model saw it: the constant rules, and the data between its marks. */
export interface Shown {
  /** As the provider was called for it: `fast`, `capable`, `reasoning`, `top`. */
  readonly model: string;
  readonly kind: 'execute' | 'correct' | 'advise';
  readonly rules: string;
  /** The user's message, unchanged. */
  readonly sent: string;
  readonly data: Record<string, unknown>;
}

export function readShown(body: ModelRequest['body']): Shown {
  const text = (role: string): string =>
    body.messages
      .filter((message) => message.role === role)
      .map(({ content }) => String(content))
      .join('\n');
  const rules = text('system');
  const sent = text('user');
  const kind = /Prompt (\w+)\/\d/.exec(rules)?.[1] as Shown['kind'];
  const [, data = ''] = /^<<<DATA \w+\n(.*)\nDATA \w+>>>$/.exec(sent) ?? [];
  return { model: body.model, kind, rules, sent, data: JSON.parse(data) };
}

/** @param rate USD per call */
export function startModelLevel(
  router: { readonly url: string; readonly key: string },
  provider: ModelServer,
  [level, rate]: readonly [string, number],
): Promise<RunningInstance> {
  const { file } = priceAt(rate);
  const capability = defineModel({
    name: `model.${level}`,
    url: provider.url,
    file: { max_concurrency: 50, ...file },
    part: { model: level },
  });
  return serve(capability, {
    ROUTER_URL: router.url,
    ROUTER_TOKEN: router.key,
    SHARED_WITH: 'all',
  });
}

/**
 * Resolves when the worker can call them.
 * @param rates level (`fast`, …) to rate in USD per call
 */
export async function startModelLevels(
  capstan: Pick<SharedCapstan, 'submit' | 'ended' | 'url' | 'key'>,
  provider: ModelServer,
  rates: Readonly<Record<string, number>>,
): Promise<{ readonly stop: () => Promise<void> }> {
  const levels = Object.entries(rates);
  const instances = await Promise.all(levels.map((level) => startModelLevel(capstan, provider, level)));
  const messages = [{ role: 'user', content: 'are you there?' }];
  const calls = Object.keys(rates).map((id) => ({ id, capability: `model.${id}`, input: { messages } }));
  const { state, error } = await capstan.ended((await capstan.submit(calls)).run_id);
  if (state !== 'succeeded') throw new Error(`the models do not answer: ${error?.message}`);
  return { stop: async () => void (await Promise.all(instances.map((instance) => instance.stop()))) };
}
