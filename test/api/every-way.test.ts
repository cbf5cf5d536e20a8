/**
 * Every way to a model × every guard of a key: budgets by key, label and user, the token rate, the list of names. A way
 * is a sender of requests to a model in the end, over the real API, and a worker where the work outlives the request.
 */

import type { KeyCreated, KeyScope } from '@capstan/core/contracts/access';
import type { CostSeries, ScopedBudget } from '@capstan/core/contracts/money';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRoutes } from '../../src/api/routes.ts';
import { ConfigSchema } from '../../src/config.ts';
import { readJson } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';
import { type LadderWorld, startLadderWorld } from '../support/ladders.ts';
import { waitFor } from '../support/wait.ts';

let world: LadderWorld;
let models: Instance[];

/** Answers in the form that is asked for, with a usage of 200 tokens. */
const answerAll: Handler = ({ input, headers }, response) => {
  const { properties = {} } = (input.response_schema ?? {}) as { properties?: object };
  const json =
    'instructions' in properties
      ? { instructions: 'be brief', suggested_executor_level: 1 }
      : 'patch' in properties
        ? { input: { rate: 3 } }
        : { result: 'ok' };
  const usage = { input_tokens: 50, output_tokens: 150 };
  const output = {
    text: 'hello world',
    json,
    model: 'm',
    finish_reason: 'stop',
    usage,
    embeddings: ['AACAPw=='],
  };
  if (headers['x-stream'] !== 'delta') return answer(response, 200, output);
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.end(
    `${JSON.stringify({ delta: { content: 'hello' } })}\n${JSON.stringify({ ok: true, output })}\n`,
  );
};

beforeAll(async () => {
  world = await startLadderWorld({});
  const price = { cost_model: { type: 'per_call', rate_usd: 1 } };
  models = await Promise.all(
    ['model.fast', 'embed.vectors'].map((name) => registerInstance(world.api, { name, ...price })),
  );
  for (const model of models) model.handle = answerAll;
});
afterAll(async () => {
  await Promise.all(models.map((model) => model.stop()));
  await world.close();
});

interface Sender {
  readonly projectId: string;
  readonly keyId: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends one request that needs a model once. @returns the code of its refusal, and the budget; null: it was made */
type Send = (sender: Sender) => Promise<Refusal | null>;

interface Refusal {
  readonly code: string;
  readonly budget?: string;
}

interface Way {
  readonly operation: string;
  readonly send: Send;
}

let sent = 0;
const marks = { 'x-capstan-labels': 'team=ads', 'x-capstan-user': 'anna' };

function post(path: string, bodyOf: () => object, more: Record<string, string> = {}): Send {
  return async ({ headers }) => {
    const called = await world.api.call(path, { body: bodyOf(), headers: { ...headers, ...more } });
    const text = await called.text();
    if (called.ok) return null;
    const { error, ...problem } = JSON.parse(text);
    return { code: error?.code ?? problem.code, budget: problem.budget };
  };
}

const messages = [{ role: 'user', content: 'x' }];
const exec = (more: object = {}) => ({ input: { messages }, ...more });
const chat = (more: object = {}) => ({ model: 'fast', messages, ...more });
const job = () => ({ job_type: 'caption', prompt: `write caption ${++sent}` });

/** By the tools of agents, whose errors are results. */
const callTool: Send = async ({ headers }) => {
  const params = { name: 'call_model__fast', arguments: { messages } };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const accept = 'application/json, text/event-stream';
  const called = await world.api.call('/mcp', { body, headers: { ...headers, accept } });
  const { result } = JSON.parse((await called.text()).replace(/^[^{]*/, ''));
  return result.isError ? result.structuredContent : null;
};

/** A ladder by itself, as a worker climbs it. */
const climb: Send = async ({ projectId, headers }) => {
  const body = { ...job(), escalation_level: 1 };
  const created = await world.api.call('/v1/escalations', { body, headers });
  const escalation = (await created.json()) as { escalation_id: string; code: string };
  if (created.status !== 202) return { code: escalation.code };
  const { escalation_id } = escalation;
  const last = await world.advance({ escalation_id, transition: 0 });
  const { state, review_id } = await world.escalation(projectId, escalation_id);
  if (state === 'succeeded') return null;
  // One that waits for tokens repeats its transition.
  if (state === 'running') return { code: last.delay_ms === undefined ? state : 'rate_limited' };
  const { payload } = await world.api.db('review').where({ review_id }).first('payload');
  return {
    code: payload.details.reason === 'budget' ? 'budget_exhausted' : state,
    budget: payload.details.budget,
  };
};

const ways: Readonly<Record<string, Way>> = {
  'a direct call': { operation: 'exec_capability', send: post('/v1/capabilities/model.fast/exec', exec) },
  'a direct call under an Idempotency-Key': {
    operation: 'exec_capability',
    send: (sender) =>
      post('/v1/capabilities/model.fast/exec', exec, { 'idempotency-key': `k${++sent}` })(sender),
  },
  'a direct call that asks the cache': {
    operation: 'exec_capability',
    send: post('/v1/capabilities/model.fast/exec', () =>
      exec({ input: { messages, seed: ++sent }, cache: { ttl_seconds: 60, insist: true } }),
    ),
  },
  'a chat completion': {
    operation: 'create_chat_completion',
    send: post('/openai/v1/chat/completions', chat),
  },
  'a chat completion as a stream': {
    operation: 'create_chat_completion',
    send: post('/openai/v1/chat/completions', () => chat({ stream: true })),
  },
  embeddings: {
    operation: 'create_embeddings',
    send: post('/openai/v1/embeddings', () => ({ model: 'vectors', input: 'x' })),
  },
  'a message': {
    operation: 'create_message',
    send: post('/anthropic/v1/messages', () => chat({ max_tokens: 50 })),
  },
  'a message as a stream': {
    operation: 'create_message',
    send: post('/anthropic/v1/messages', () => chat({ max_tokens: 50, stream: true })),
  },
  'a response': {
    operation: 'create_response',
    send: post('/openai/v1/responses', () => ({ model: 'fast', input: 'x' })),
  },
  'a response as a stream': {
    operation: 'create_response',
    send: post('/openai/v1/responses', () => ({ model: 'fast', input: 'x', stream: true })),
  },
  'a tool of an agent': { operation: 'call_agent_tools', send: callTool },
  'one execution of a level': {
    operation: 'execute_level',
    send: post('/execute', () => ({ ...job(), level: 1 })),
  },
  'advice of a level': {
    operation: 'advise',
    send: post('/advise', () => ({ ...job(), from_level: 1, error: 'it is too long' })),
  },
  'a ladder by itself': { operation: 'start_escalation', send: climb },
};

function calls(): number {
  return models.reduce((sum, { execs }) => sum + execs.length, 0);
}

async function aSender(rights: { scopes?: KeyScope[]; tokens_per_minute?: number } = {}): Promise<Sender> {
  const projectId = await world.newProject();
  const body = { name: 'k', projects: [projectId], scopes: ['capability:call', 'escalate'], ...rights };
  const [, { key_id: keyId, key }] = await readJson<KeyCreated>(world.call(projectId, '/v1/keys', { body }));
  return { projectId, keyId, headers: { ...marks, authorization: `Bearer ${key}` } };
}

async function putBudget({ projectId }: Sender, scope: string): Promise<void> {
  const path = `/v1/budgets/scoped/${encodeURIComponent(scope)}`;
  const set = await world.call(projectId, path, { method: 'PUT', body: { limit_usd: 1.5 } });
  expect(set.status).toBe(200);
}

async function spentOf({ projectId }: Sender): Promise<readonly [string, number, number][]> {
  const [, { items }] = await readJson<{ items: ScopedBudget[] }>(
    world.call(projectId, '/v1/budgets/scoped'),
  );
  return items.map(({ scope, spent_usd, reserved_usd }) => [scope, spent_usd, reserved_usd]);
}

async function costsBy({ projectId }: Sender, by: string): Promise<readonly (readonly [string, unknown])[]> {
  const [, { series }] = await readJson<CostSeries>(
    world.call(projectId, `/v1/costs/series?by=${encodeURIComponent(by)}`),
  );
  return series.map(({ name, usd }) => [name, usd]);
}

test('the table has every operation that makes calls', () => {
  const config = ConfigSchema.parse({ DATABASE_URL: 'postgres://x', MEDIA_URL: 'file:///x' });
  const scopes: ReadonlySet<string | null> = new Set(['capability:call', 'escalate']);
  const making = createRoutes(config).filter(
    ({ scope, method, isForPrograms }) => (scopes.has(scope) || isForPrograms === true) && method === 'POST',
  );
  const silent = new Set(['cancel_response', 'count_message_tokens']);
  expect(new Set(making.map(({ operation }) => operation).filter((name) => !silent.has(name)))).toEqual(
    new Set(Object.values(ways).map(({ operation }) => operation)),
  );
});

describe.each(Object.entries(ways))('%s', (_, { send }) => {
  test.each(['key', 'label', 'user'] as const)('is paid and refused by a budget of its %s', async (kind) => {
    const sender = await aSender();
    const scope = { key: `key:${sender.keyId}`, label: 'label:team=ads', user: 'user:anna' }[kind];
    await putBudget(sender, scope);
    const before = calls();
    expect(await send(sender)).toBeNull();
    await waitFor('the cost to be booked', async () => (await spentOf(sender))[0]?.[1] === 1);
    expect(await send(sender)).toMatchObject({ code: 'budget_exhausted' });
    expect([calls() - before, await spentOf(sender)]).toEqual([1, [[scope, 1, 0]]]);
    expect(await costsBy(sender, 'key')).toEqual([[sender.keyId, 1]]);
    expect(await costsBy(sender, 'label:team')).toEqual([['ads', 1]]);
    expect(await costsBy(sender, 'user')).toEqual([['anna', 1]]);
  });

  test('uses up the tokens of its key', async () => {
    const sender = await aSender({ tokens_per_minute: 10 });
    const before = calls();
    expect(await send(sender)).toBeNull();
    expect(await send(sender)).toMatchObject({ code: 'rate_limited' });
    expect(calls() - before).toBe(1);
  });

  test('reaches no name that its key may not call', async () => {
    const sender = await aSender({ scopes: ['escalate', 'capability:call:other.*'] });
    const before = calls();
    expect(await send(sender)).toMatchObject({ code: 'forbidden' });
    expect(calls() - before).toBe(0);
  });
});

describe('a ladder of a run', () => {
  test.each(['key', 'label'] as const)(
    'is paid and refused by a budget of the %s of its run',
    async (kind) => {
      const sender = await aSender();
      const { projectId: project_id, keyId: key_id } = sender;
      const scope = { key: `key:${key_id}`, label: 'label:team=ads' }[kind];
      await putBudget(sender, scope);
      const before = calls();
      const run = { project_id, key_id, labels: { team: 'ads' }, input: { rate: 44_101 } };
      const { place } = await world.failStep(run);
      const end = await world.climb(place);
      expect(end.command).toMatchObject({ outcome: 'review' });
      const { review_id } = await world.escalation(project_id, place.escalation_id);
      const review = await world.api.db('review').where({ review_id }).first('kind', 'payload');
      expect(review).toMatchObject({ kind: 'budget', payload: { details: { budget: scope } } });
      expect([calls() - before, await spentOf(sender)]).toEqual([1, [[scope, 1, 0]]]);
      expect(await costsBy(sender, 'key')).toEqual([[key_id, 1]]);
    },
  );

  test('is limited by neither the names nor the tokens of the key, as its steps are', async () => {
    const sender = await aSender({ scopes: ['capability:call:other.*'], tokens_per_minute: 10 });
    const { projectId: project_id, keyId: key_id } = sender;
    const { place } = await world.failStep({ project_id, key_id, input: { rate: 44_101 } });
    const before = calls();
    await world.climb(place);
    expect(calls() - before).toBeGreaterThan(1);
  });
});
