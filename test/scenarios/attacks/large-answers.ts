/** Attacks by work that is long and in one piece: answers and checks whose size a tenant chooses. */
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import { answerText, type InstanceOptions, startInstance } from '../../support/fleet.ts';
import type { Answers, Attack, Target } from './attacks.ts';

async function ask({ url, key }: Target, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const init = { method, headers, signal: AbortSignal.timeout(60_000) };
  const answer = await fetch(url + path, body === undefined ? init : { ...init, body: JSON.stringify(body) });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** Registered at the target, and known to its router. */
async function register(target: Target, options: InstanceOptions) {
  const request = async <Body>(method: string, path: string, body: unknown) => {
    const { status, headers, text } = await ask(target, method, path, body);
    return { status, headers, body: JSON.parse(text) as Body };
  };
  return startInstance({ request }, options);
}

async function countStatuses(answers: readonly Promise<{ readonly status: number }>[]): Promise<Answers> {
  const counts = new Map<string, number>();
  for (const { status } of await Promise.all(answers)) {
    counts.set(String(status), (counts.get(String(status)) ?? 0) + 1);
  }
  return counts;
}

const vectors: Attack = {
  name: 'answers of a million numbers',
  play: async (target) => {
    const instance = await register(target, { name: 'embed.freezing', max_concurrency: 8 });
    const inBase64 = (numbers: number): string =>
      Buffer.from(Float32Array.from({ length: numbers }, (_, n) => Math.sin(n)).buffer).toString('base64');
    const texts = [1_000_000, 3_000_000].map((numbers) =>
      JSON.stringify({ embeddings: [inBase64(numbers)] }),
    );
    let asked = 0;
    instance.handle = (_, response) => answerText(response, texts[asked++ % texts.length] ?? '');
    const call = { model: 'embed.freezing', input: 'x' };
    try {
      return await countStatuses(
        Array.from({ length: 6 }, () => ask(target, 'POST', '/openai/v1/embeddings', call)),
      );
    } finally {
      await instance.stop();
    }
  },
};

const checks: Attack = {
  name: 'checks by a large schema',
  play: async (target) => {
    const branches = Array.from({ length: 80 }, (_, n): JsonObject => {
      const property: JsonObject = { oneOf: [{ const: n }, { type: 'string', minLength: n }] };
      return { properties: { [`k${n}`]: property }, required: [`k${n}`] };
    });
    const input = { type: 'object', unevaluatedProperties: false, anyOf: branches };
    const instance = await register(target, { name: 'check.freezing', input });
    const check = () => ask(target, 'POST', '/v1/capabilities/check.freezing/check', { input: { z: 1 } });
    try {
      return await countStatuses(Array.from({ length: 40 }, check));
    } finally {
      await instance.stop();
    }
  },
};

/** `/livez` is as prompt beside them as beside other freezing attacks. */
export const largeAnswers: readonly Attack[] = [vectors, checks];
