/** Attacks by work that is long and in one piece: answers and checks whose size a tenant chooses. */
import type { JsonObject } from '@capstan/core/contracts/primitives';
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

/** @param prefix of its names: with another one it is another schema */
function aLargeSchema(prefix = 'k'): JsonObject {
  const branches = Array.from({ length: 80 }, (_, n): JsonObject => {
    const property: JsonObject = { oneOf: [{ const: n }, { type: 'string', minLength: n }] };
    return { properties: { [`${prefix}${n}`]: property }, required: [`${prefix}${n}`] };
  });
  return { type: 'object', unevaluatedProperties: false, anyOf: branches };
}

/** One name is in all parts of a union, which merges them. */
function aMergedSchema(prefix: string): JsonObject {
  const names = Array.from({ length: 400 }, (_, n) => [`${prefix}${n}`, {}]);
  const anyOf = names.map(() => ({ $ref: '#/$defs/wide' }));
  const $defs = { wide: { properties: Object.fromEntries(names) } };
  return { type: 'object', $defs, anyOf, unevaluatedProperties: false };
}

/** Nothing has been checked by any of them before. */
const newChecks: Attack = {
  name: 'first checks by ten large schemas',
  play: async (target) => {
    const inputs = Array.from({ length: 10 }, (_, at) => (at % 2 ? aMergedSchema : aLargeSchema)(`s${at}n`));
    const instances = [];
    for (const [at, input] of inputs.entries())
      instances.push(await register(target, { name: `check.new${at}`, input }));
    const check = (at: number) =>
      ask(target, 'POST', `/v1/capabilities/check.new${at}/check`, { input: { z: 1 } });
    try {
      return await countStatuses(inputs.map((_, at) => check(at)));
    } finally {
      for (const instance of instances) await instance.stop();
    }
  },
};

/** A small schema, and values that take most of the work that a check may do. */
const longChecks: Attack = {
  name: 'checks of large values',
  play: async (target) => {
    const input = {
      type: 'object',
      properties: { items: { items: { anyOf: Array.from({ length: 20 }, (_, n) => ({ const: n })) } } },
    };
    const instance = await register(target, { name: 'check.long', input });
    const items = Array.from({ length: 60_000 }, () => 19);
    const check = () => ask(target, 'POST', '/v1/capabilities/check.long/check', { input: { items } });
    try {
      return await countStatuses(Array.from({ length: 10 }, check));
    } finally {
      await instance.stop();
    }
  },
};

const checks: Attack = {
  name: 'checks by a large schema',
  play: async (target) => {
    const input = aLargeSchema();
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
export const largeAnswers: readonly Attack[] = [vectors, checks, newChecks, longChecks];
