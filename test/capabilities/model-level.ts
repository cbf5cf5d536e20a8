/** A model level served over a scripted provider, and calls of it. */

import type { RunningInstance } from '@capstan/capability';
import { readModelSettings } from '../../capabilities/model/configuration.ts';
import { defineModel } from '../../capabilities/model/define-model.ts';
import { exec, serve } from '../../packages/capability/test/support/capabilities.ts';
import { type ModelReply, startModelServer } from '../support/model-server.ts';

export const key = 'sk-very-secret-0123456789';
export const priced = { MODEL_RATE_USD: '0.02', MODEL_USD_PER_MTOK_IN: '1.5', MODEL_USD_PER_MTOK_OUT: '3' };
export function user(content: string) {
  return { messages: [{ role: 'user', content }] };
}
export const schema = {
  type: 'object',
  properties: { rate: { type: 'integer' } },
  required: ['rate'],
  additionalProperties: false,
};

/** A priced `model.fast`; `lines` grows with what its instances print. */
export async function startModelLevel() {
  const provider = await startModelServer();
  const lines: string[] = [];
  const environment = (more: Record<string, string> = {}): Record<string, string> => ({
    MODEL_PROVIDER: 'openai-compatible',
    MODEL_BASE_URL: provider.url,
    MODEL_NAME: 'small',
    MODEL_API_KEY: key,
    ...more,
  });
  /** Another instance, without a price unless `more` names one. */
  const start = (more: Record<string, string> = {}, env: Record<string, string> = {}) =>
    serve(defineModel(readModelSettings(environment(more))), env, { print: (line) => lines.push(line) });
  const instance = await start(priced);

  /** The answer to a call, and the one request at most that it makes. */
  const ask = async (input: object, reply: ModelReply, target: RunningInstance = instance) => {
    const before = provider.requests.length;
    provider.answer(() => reply);
    const { status, body } = await exec(target, input);
    const requests = provider.requests.slice(before);
    if (requests.length > 1) throw new Error(`the provider was asked ${requests.length} times`);
    return { status, body, request: requests[0] };
  };

  const close = async (): Promise<void> => {
    await instance.stop();
    await provider.close();
  };
  return { provider, instance, lines, environment, start, ask, close };
}

export type ModelLevel = Awaited<ReturnType<typeof startModelLevel>>;
