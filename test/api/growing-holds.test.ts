/** Holds that grow with their calls, on the real router: what is held, who begins, who is stopped, and what is charged. */

import type { ServerResponse } from 'node:http';
import type { Decision, DecisionDetail } from '@capstan/core/contracts/decision';
import type { LedgerEntry } from '@capstan/core/contracts/money';
import { addLength } from '@capstan/core/money/holds';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { listBreaches, watchCommits } from '../support/commit-watch.ts';
import { aLimitedProject, type Executed, execOn, registerInstance } from '../support/direct-calls.ts';
import type { Exec, Instance } from '../support/fleet.ts';
import { findDrift, findViolations } from '../support/invariants.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
const instances: Instance[] = [];
beforeAll(async () => {
  api = await startTestApi();
  await watchCommits(api.db);
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await api.close();
});

/** USD. */
const perToken = 0.000_01;
const cost_model = {
  type: 'per_call',
  rate_usd: 1,
  worst_case: `{{ 0.001 + (input.max_output_tokens ?? 4096) * ${perToken} }}`,
  start: '{{ 0.001 }}',
  per_token: `{{ ${perToken} }}`,
};

interface Paced extends Instance, Pace {
  /** Lets the calls make so many more tokens each. */
  go(tokens: number): void;
}

/** A model that writes the number of tokens that its question asks for, as fast as the test lets it. */
async function aModel(name: string, lengths: readonly number[], more: object = {}): Promise<Paced> {
  const instance = await registerInstance(api, {
    name,
    cost_model,
    settle: 'reported',
    stops: true,
    tags: [],
    max_concurrency: 500,
    ...more,
  });
  instances.push(instance);
  const made: number[] = [];
  const steps = new Set<(tokens: number) => void>();
  instance.handle = (exec, response) => writeTokens(exec, response, { made, steps });
  if (lengths.length > 0) await learn(name, lengths);
  return Object.assign(instance, {
    made,
    steps,
    go: (tokens: number) => {
      for (const step of [...steps]) step(tokens);
    },
  });
}

interface Pace {
  /** Tokens that were made, by call. */
  readonly made: number[];
  readonly steps: Set<(tokens: number) => void>;
}

function writeTokens({ input }: Exec, response: ServerResponse, { made, steps }: Pace): void {
  const wanted = Number((input as { tokens: number }).tokens);
  const at = made.push(0) - 1;
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.flushHeaders();
  const step = (tokens: number): void => {
    for (let token = 0; token < tokens && (made[at] as number) < wanted; token++) {
      made[at] = (made[at] as number) + 1;
      response.write(`${JSON.stringify({ delta: { content: 'ab' } })}\n`);
    }
    if (made[at] === wanted) {
      const cost_usd = Number((0.001 + wanted * perToken).toFixed(12));
      response.end(
        `${JSON.stringify({ ok: true, output: { text: 'ab'.repeat(wanted), finish_reason: 'stop', cost_usd } })}\n`,
      );
      steps.delete(step);
    }
  };
  steps.add(step);
  step(0);
  response.on('close', () => steps.delete(step));
}

function lengthsOf(units: readonly number[]): readonly number[] {
  return units.reduce<readonly number[]>(addLength, []);
}

/** The router has seen these answers before, of a model that takes its time. */
async function learn(name: string, lengths: readonly number[]): Promise<void> {
  await api
    .db('instance')
    .where({ name })
    .update({ lengths: lengthsOf(lengths), duration_ms: 10_000, deviation_ms: 100 });
  await waitFor('the router to know', async () => {
    const { body } = await execOn(api, name, ask(0));
    return body.routing?.reason.includes('its hold grows');
  });
}

const usual = Array.from({ length: 64 }, (_, at) => 80 + at);

const ask = (tokens: number, more: object = {}) => ({
  body: { input: { tokens }, on_budget: 'stop', ...more },
});

async function budgetOf(scope: string) {
  const row = await api.db('budget').where({ scope }).orderBy('window_start', 'desc').first();
  return {
    held: Number(row?.reserved_nano ?? 0),
    spent: Number(row?.spent_nano ?? 0),
    rest: Number(row?.rest_nano ?? 0),
  };
}

async function noneOpen(capability: string): Promise<void> {
  await waitFor('all ends to be written', async () => {
    const open = await api.db('attempt').where({ capability }).whereNull('finished_at');
    return open.length === 0;
  });
}

/** @returns the ends of calls, which begin one after the other */
function begin(
  name: string,
  count: number,
  tokens: number,
  headers: Record<string, string>,
  more: object = {},
) {
  return Array.from({ length: count }, () => execOn(api, name, { ...ask(tokens, more), headers }));
}

/** Lets the calls continue, token by token, until all have ended. */
async function playOn<End>(model: Paced, calls: readonly Promise<End>[]): Promise<End[]> {
  let isOver = false;
  const ended = Promise.all(calls).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    model.go(1);
    await api.db.raw('select pg_sleep(0.002)'); // at most 500 tokens a second
  }
  return ended;
}

function statusesOf(ended: readonly Executed[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of ended) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The decision and the ledger show how the hold has grown, and that the call was stopped. */
async function showPieces({ body }: Executed, headers: Record<string, string>): Promise<void> {
  const { decision_id, reserved_usd, settled_usd } = body.routing as Decision;
  const decision = (
    await api.call(`/v1/decisions/${decision_id}`, { headers })
  ).json() as Promise<DecisionDetail>;
  const { held_usd, pieces = [], stopped, attempt_id } = await decision;
  const sum = pieces.reduce((usd, piece) => usd + piece.usd, reserved_usd);
  expect([stopped, sum]).toEqual(['budget', expect.closeTo(held_usd as number, 9)]);
  expect(settled_usd).toBeLessThanOrEqual(held_usd as number); // a piece may come after the end
  expect(pieces.length).toBeGreaterThan(1);
  const listed = await api.call('/v1/ledger?kind=reserve', { headers });
  const { items } = (await listed.json()) as { items: LedgerEntry[] };
  const entry = items.find((item) => item.attempt_id === attempt_id);
  expect(entry).toMatchObject({ amount_usd: reserved_usd, held_usd, pieces });
}

const worstUsd = 0.001 + 4_096 * perToken;

describe('the end of the room', () => {
  test('is chosen by the call, else the key, else the project', async () => {
    const model = await aModel('model.chosen', usual);
    const { headers: admin, projectId } = await aLimitedProject(api, 100);
    const scopes = ['capability:call', 'capability:read'];
    const keyOf = async (on_budget?: string) => {
      const body = { name: 'k', projects: [projectId], scopes, ...(on_budget ? { on_budget } : {}) };
      const made = await api.call('/v1/keys', { body, headers: admin });
      const { key } = (await made.json()) as { key: string };
      return { authorization: `Bearer ${key}` };
    };
    const [plain, stops, refuses] = [await keyOf(), await keyOf('stop'), await keyOf('refuse')];
    const reasonOf = async (headers: Record<string, string>, on_budget?: string) => {
      const body = { input: { tokens: 1 }, ...(on_budget ? { on_budget } : {}) };
      const question = { capability: 'model.chosen', ...body };
      const foreseen = (await (await api.call('/v1/route', { body: question, headers })).json()) as Decision;
      const [ended] = await playOn(model, [execOn(api, 'model.chosen', { body, headers })]);
      const grows = ended?.body.routing?.reason.includes('its hold grows');
      expect(foreseen.reason.includes('its hold grows')).toBe(grows);
      return grows;
    };
    const setProject = async (on_budget: string | null) => {
      const path = `/v1/projects/${projectId}/settings`;
      return (await api.call(path, { method: 'PUT', body: { on_budget }, headers: admin })).json();
    };
    expect([await reasonOf(plain), await reasonOf(stops), await reasonOf(plain, 'stop')]).toEqual([
      false,
      true,
      true,
    ]);
    expect(await setProject('stop')).toMatchObject({ on_budget: 'stop', strict: false });
    expect([await reasonOf(plain), await reasonOf(refuses), await reasonOf(refuses, 'stop')]).toEqual([
      true,
      false,
      true,
    ]);
    await setProject('pause'); // concerns steps alone
    expect([await reasonOf(plain), await reasonOf(stops)]).toEqual([false, true]);
    expect(await setProject(null)).toMatchObject({ on_budget: null });
  });
});

describe('a call that can be stopped', () => {
  test('costs what is reported, however its hold has grown', async () => {
    const model = await aModel('model.plain', usual);
    const { headers, projectId } = await aLimitedProject(api, 1);
    const ended = await playOn(model, begin('model.plain', 5, 100, headers));
    expect(ended.map(({ status, body }) => [status, body.routing?.settled_usd])).toEqual(
      Array.from({ length: 5 }, () => [200, 0.002]),
    );
    await noneOpen('model.plain');
    expect(await budgetOf(`project:${projectId}`)).toEqual({ held: 0, spent: 10_000_000, rest: 0 });
    expect(await findViolations(api.db, [])).toEqual([]);
  });

  test('begins where its worst case has no room, and twelve times as many do at once', async () => {
    const model = await aModel('model.many', usual);
    const { headers } = await aLimitedProject(api, worstUsd * 1.2);
    const whole = await playOn(model, begin('model.many', 2, 100, headers, { on_budget: 'refuse' }));
    const before = model.made.length;
    const calls = begin('model.many', 12, 100, headers);
    await waitFor('all calls', async () => model.made.length === before + 12);
    expect(statusesOf(await playOn(model, calls))).toEqual({ 200: 12 });
    expect(statusesOf(whole)).toEqual({ 200: 1, 429: 1 });
  });

  test('is stopped when there is no more room, and its budget is never passed', async () => {
    const model = await aModel('model.long', usual);
    const { headers, projectId } = await aLimitedProject(api, 0.01);
    const ended = await playOn(model, begin('model.long', 3, 3_000, headers));
    expect(statusesOf(ended)).toEqual({ 200: 3 });
    for (const { body } of ended) {
      expect(body).toMatchObject({ output: { finish_reason: 'length' }, routing: { stopped: 'budget' } });
      expect((body.output as { text: string }).text).toMatch(/^(?:ab)+$/);
    }
    await noneOpen('model.long');
    const { held, spent } = await budgetOf(`project:${projectId}`);
    const billed = model.made
      .filter((made) => made > 0)
      .reduce((sum, made) => sum + 1_000_000 + made * 10_000, 0);
    await showPieces(ended[0] as Executed, headers);
    expect(held).toBe(0);
    expect(spent).toBeGreaterThan(6_000_000);
    expect(spent).toBeLessThanOrEqual(10_000_000);
    expect(billed).toBeLessThanOrEqual(spent);
    expect(await listBreaches(api.db)).toEqual([]);
    expect(await findDrift(api.db)).toEqual([]);
  });

  test('ends its stream as an answer that has reached its limit of length', async () => {
    const model = await aModel('model.told', usual);
    const { headers } = await aLimitedProject(api, 0.004);
    const body = { model: 'told', stream: true, messages: [{ role: 'user', content: 'go on' }] };
    model.handle = (exec, response) =>
      writeTokens({ ...exec, input: { tokens: 3_000 } }, response, { made: model.made, steps: model.steps });
    const asked = api.call('/openai/v1/chat/completions', { body, headers });
    const [events] = await playOn(model, [asked.then((answer) => answer.text())]);
    expect(events).toContain('"finish_reason":"length"');
    expect(events).toContain('\n\n: capstan budget_reserved: ');
    expect(events?.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  test('of another kind than a model fails with the time after which to come back', async () => {
    const work = await aModel('work.long', usual);
    const { headers } = await aLimitedProject(api, 0.004);
    const [ended] = await playOn(work, begin('work.long', 1, 3_000, headers));
    expect([ended?.status, ended?.body.code]).toEqual([429, 'budget_reserved']);
    expect(ended?.headers.get('retry-after')).not.toBeNull();
  });

  test('paid by time is stopped when there is no more room for its next second', async () => {
    const terms = { cost_model: { type: 'per_second', rate_usd: 0.001 }, settle: undefined };
    const work = await aModel(
      'work.timed',
      usual.map((n) => n * 10),
      terms,
    ); // ms
    const { headers, projectId } = await aLimitedProject(api, 0.004);
    const calls = begin('work.timed', 1, 1, headers);
    const [ended] = await Promise.all(calls);
    expect([ended?.status, ended?.body.code]).toEqual([429, 'budget_reserved']);
    await noneOpen('work.timed');
    const { held, spent } = await budgetOf(`project:${projectId}`);
    expect(held).toBe(0);
    expect(spent).toBeGreaterThan(1_000_000);
    expect(spent).toBeLessThanOrEqual(4_000_000);
    expect(work.execs.at(-1)?.closed).toBe(true);
  });
});
