/** A model served over a scripted provider, and calls of it. */
import type { RunningInstance } from '@capstan/capability/lifecycle/start-instance';
import { type ModelReply, startModelServer } from '../../../test/support/model-server.ts';
import { defineModel, type ModelFile, priced } from '../../../test/support/wrapped-models.ts';
import { exec, serve } from '../../capability/test/support/capabilities.ts';

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
  /** Another instance, without a price unless `more` names one. */
  const start = (more: Partial<ModelFile> = {}, env: Record<string, string> = {}) =>
    serve(defineModel({ url: provider.url, ...more }), env, { print: (line) => lines.push(line) });
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
  return { provider, instance, lines, start, ask, close };
}

export type ModelLevel = Awaited<ReturnType<typeof startModelLevel>>;
