/** What a call that failed has used is booked: as its instance reports it, else as the reservation where it did work. */
import type { ServerResponse } from 'node:http';
import type { KeyCreated } from '@capstan/core/contracts/access';
import type { LedgerEntry } from '@capstan/core/contracts/money';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let model: Instance;
const worst_case = '{{ 0.02 }}';
const reserved = 0.02;

beforeAll(async () => {
  api = await startTestApi();
  const cost_model = { type: 'per_call', rate_usd: 0.1, worst_case };
  model = await registerInstance(api, { name: 'model.paid', cost_model, settle: 'reported', tags: [] });
});
beforeEach(() => {
  model.handle = (_, response) => answer(response, 200, { text: 'x', cost_usd: 0.001 });
});
afterAll(async () => {
  await model.stop();
  await api.close();
});

const messages = [{ role: 'user', content: 'an essay' }];

/** The last line of the ledger that settles a call. */
async function booked() {
  await waitFor('the end to be written', async () => {
    const open = await api.db('attempt').where({ capability: 'model.paid' }).whereNull('finished_at');
    return open.length === 0;
  });
  const [, { items }] = await readJson<{ items: LedgerEntry[] }>(api.call('/v1/ledger?limit=10'));
  const last = items.find(({ kind }) => kind !== 'reserve');
  return last && { usd: last.amount_usd, certainty: last.certainty };
}

function inLines(...lines: object[]): Handler {
  return (_, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  };
}

const used = { usage: { input_tokens: 900, output_tokens: 100 }, cost_usd: 0.0123 };
const refusal = { ok: false, error: 'model_answer_invalid: no JSON' };

describe('a failure that reports its cost is settled by it', () => {
  test.each<[name: string, handle: Handler, status: number]>([
    ['422', (_, response) => answer(response, 422, { ...refusal, ...used }), 422],
    ['502', (_, response) => answer(response, 502, { ...refusal, ...used }), 502],
    ['429', (_, response) => answer(response, 429, { ...refusal, ...used }), 503],
    ['200 with ok: false', (_, response) => answer(response, 200, { ...refusal, ...used }), 422],
    ['the last of several lines', inLines({ progress: 0.5 }, { ...refusal, status: 422, ...used }), 422],
  ])('%s', async (_, handle, status) => {
    model.handle = handle;
    expect((await execOn(api, 'model.paid', { body: { input: { messages } } })).status).toBe(status);
    expect(await booked()).toEqual({ usd: used.cost_usd, certainty: 'exact' });
  });

  test('an output that its own schema forbids', async () => {
    const strict = { type: 'object', properties: { text: { type: 'string' } } };
    const cost_model = { type: 'per_call', rate_usd: 0.1 };
    const name = 'model.strict';
    const instance = await registerInstance(api, { name, cost_model, settle: 'reported', output: strict });
    instance.handle = (_, response) => answer(response, 200, { text: 5, ...used });
    expect((await execOn(api, name)).body.code).toBe('output_invalid');
    expect(await booked()).toEqual({ usd: used.cost_usd, certainty: 'exact' });
    await instance.stop();
  });

  test.each([-1, '0.5', null, [1]])('but not by %j, which is no cost', async (cost_usd) => {
    model.handle = (_, response) => answer(response, 422, { ...refusal, cost_usd });
    expect((await execOn(api, 'model.paid', { body: { input: { messages } } })).status).toBe(422);
    expect((await booked())?.usd).toBe(0);
  });
});

describe('a failure that reports an unknown cost', () => {
  test.each([422, 502, 503, 429])('of status %i costs its reservation, as an estimate', async (status) => {
    model.handle = (_, response) => answer(response, status, { ...refusal, cost_unknown: true });
    await execOn(api, 'model.paid', { body: { input: { messages } } });
    expect(await booked()).toEqual({ usd: reserved, certainty: 'estimated' });
  });

  test.each([
    [{ ...used, cost_unknown: true }, used.cost_usd],
    [{ cost_usd: 0, cost_unknown: true }, 0],
    [{ cost_unknown: 'yes' }, 0],
    [{ cost_unknown: false }, 0],
  ])('is none where it reports a cost, or something else: %j', async (report, usd) => {
    model.handle = (_, response) => answer(response, 422, { ...refusal, ...report });
    await execOn(api, 'model.paid', { body: { input: { messages } } });
    expect(await booked()).toEqual({ usd, certainty: 'exact' });
  });
});

describe('a refusal without a report costs nothing', () => {
  test.each([401, 404, 422, 500])('%i', async (status) => {
    model.handle = (_, response) => answer(response, status, refusal);
    await execOn(api, 'model.paid', { body: { input: { messages } } });
    expect(await booked()).toEqual({ usd: 0, certainty: 'exact' });
  });
});

const parts = ['an essay', ' without its last brace'].map((content) => ({ delta: { content } }));
/** An answer that is streamed in full, and is then no answer. */
const stops = [
  ['a refusal', inLines(...parts, { ...refusal, status: 422 })],
  ['a failure', inLines(...parts, { ok: false, error: 'timeout', status: 504 })],
  ['a refusal for now', inLines(...parts, { ok: false, error: 'later', status: 429 })],
  ['no last line', inLines(...parts)],
  ['an unusable last line', inLines(...parts, { ok: true })],
] as const;

describe('an answer that was streamed in part', () => {
  test.each(stops)('and ends with %s costs its reservation, as an estimate', async (_, handle) => {
    model.handle = handle;
    const body = {
      model: 'paid',
      messages,
      stream: true,
      response_format: { type: 'json_object' },
      stop: ['}'],
    };
    const text = await (await api.call('/openai/v1/chat/completions', { body })).text();
    expect(text).toContain('without its last brace');
    expect(text).toContain('"error"');
    expect(await booked()).toEqual({ usd: reserved, certainty: 'estimated' });
  });

  test.each(stops)('and ends with %s counts against the tokens of its key', async (_, handle) => {
    const limited = {
      name: 'k',
      projects: [api.projectId],
      scopes: ['capability:call'],
      tokens_per_minute: 1_000,
    };
    const [, { key }] = await readJson<KeyCreated>(api.call('/v1/keys', { body: limited }));
    const headers = { authorization: `Bearer ${key}` };
    model.handle = handle;
    const body = { model: 'paid', messages, stream: true, stop: ['}'] };
    const statuses: number[] = [];
    for (let made = 0; made < 3; made++) {
      const response = await api.call('/openai/v1/chat/completions', { headers, body });
      await response.text();
      statuses.push(response.status);
    }
    expect(statuses).toEqual([200, 429, 429]);
  });

  test('and reports what it used costs that', async () => {
    model.handle = inLines(...parts, { ...refusal, status: 422, ...used });
    const body = { model: 'paid', messages, stream: true };
    await (await api.call('/openai/v1/chat/completions', { body })).text();
    expect(await booked()).toEqual({ usd: used.cost_usd, certainty: 'exact' });
  });
});

test('an answer without the cost that its instance should report costs its reservation, as an estimate', async () => {
  model.handle = (_, response) => answer(response, 200, { text: 'x' });
  expect((await execOn(api, 'model.paid', { body: { input: { messages } } })).status).toBe(200);
  expect(await booked()).toEqual({ usd: reserved, certainty: 'estimated' });
});
