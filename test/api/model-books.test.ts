/**
 * The ledger beside the books of a provider, over a thousand calls in three protocols with every way in which providers
 * report tokens: each call is booked to the nano-USD, or as an estimate.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { isLong } from '../support/long.ts';
import {
  type BilledTokens,
  billOf,
  filePrices,
  longQuestion,
  type Quirk,
  quirks,
  replyOf,
  type Wire,
} from '../support/model-books.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';

const exchanges = Number(process.env.EXCHANGES ?? (isLong ? 1_000 : 84));
const seed = Number(process.env.SEED ?? 1);

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  const file = { cost: { type: 'per_call', rate_usd: 40 } };
  const prices = { prices: filePrices, max_output_tokens: 2_000 };
  await models.start('model.chat', {
    file,
    part: { ...prices, protocols: ['openai.chat', 'openai.responses'] },
  });
  await models.start('model.chat-only', { file, part: { ...prices, protocols: [] } });
  await models.start('model.claude', { kind: 'anthropic', file, part: prices });
  await models.start('model.claude-only', { kind: 'anthropic', file, part: { ...prices, protocols: [] } });
});
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

/** Numbers below 1 that a seed decides. */
function createDice(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const paths = {
  chat: '/openai/v1/chat/completions',
  responses: '/openai/v1/responses',
  messages: '/anthropic/v1/messages',
} as const satisfies Record<Wire, string>;
const clients = Object.keys(paths) as Wire[];
const names = ['chat', 'chat-only', 'claude', 'claude-only'];

interface Exchange {
  readonly quirk: Quirk;
  readonly client: Wire;
  readonly model: string;
  readonly isStream: boolean;
  readonly tokens: BilledTokens;
}

/** How the model is asked, which follows from what it and the client speak. */
function wireTo(model: string, client: Wire): { readonly wire: Wire; readonly isNative: boolean } {
  const isNative = model === (client === 'messages' ? 'claude' : 'chat');
  if (model.startsWith('claude')) return { wire: 'messages', isNative };
  return { wire: isNative ? client : 'chat', isNative };
}

function fits({ wires = clients, isNative = false }: Quirk, model: string, client: Wire): boolean {
  const way = wireTo(model, client);
  return wires.includes(way.wire) && (!isNative || way.isNative);
}

function pickTokens({ tokens = [], isLong = false }: Quirk, dice: () => number): BilledTokens {
  const some = (most: number): number => 1 + Math.floor(dice() * most);
  const of = (name: keyof BilledTokens, most: number): number => (tokens.includes(name) ? some(most) : 0);
  const input = isLong ? longQuestion - 50 + some(100) : some(900);
  return {
    input,
    read: of('read', isLong ? 60 : 900),
    write: of('write', 300),
    write1h: of('write1h', 300),
    audioIn: of('audioIn', 200),
    imageIn: of('imageIn', 300),
    output: 2 + some(600),
    reasoning: of('reasoning', 600),
    audioOut: of('audioOut', 300),
  };
}

/** Failures do not follow one another, so that no instance is left alone for them. */
function placeOf(at: number): number {
  return (at * 11) % Object.keys(quirks).length;
}

function pickExchange(at: number, dice: () => number): Exchange {
  const all = Object.values(quirks);
  const quirk = all[placeOf(at)] as Quirk;
  for (;;) {
    const client = clients[Math.floor(dice() * clients.length)] as Wire;
    const model = names[Math.floor(dice() * names.length)] as string;
    const isStream = quirk.streams === true || dice() < 0.5;
    if (fits(quirk, model, client))
      return { quirk, client, model, isStream, tokens: pickTokens(quirk, dice) };
  }
}

const schema = { type: 'object', properties: { rate: { type: 'integer' } }, required: ['rate'] };

function requestOf({ quirk, client, model, isStream }: Exchange): object {
  const text = 'word '.repeat(quirk.isLong ? 45_000 : 1_000);
  const common = { model, stream: isStream };
  const messages = [{ role: 'user', content: text }];
  const json = quirk.wantsJson === true;
  if (client === 'messages') {
    const output_config = { format: { type: 'json_schema', schema } };
    return { ...common, messages, max_tokens: 2_000, ...(json ? { output_config } : {}) };
  }
  if (client === 'responses') {
    const format = { type: 'json_schema', name: 'a', schema };
    return {
      ...common,
      input: text,
      store: false,
      max_output_tokens: 2_000,
      ...(json ? { text: { format } } : {}),
    };
  }
  const response_format = { type: 'json_schema', json_schema: { name: 'a', schema } };
  return { ...common, messages, max_tokens: 2_000, ...(json ? { response_format } : {}) };
}

interface Booked {
  readonly nano: bigint;
  readonly certainty: string;
}

/** The one call that was made after so many others. @param what for a person */
function bookedAfter(calls: number, what: string): Promise<Booked> {
  return waitFor(`the end of ${what}`, async () => {
    const settled = () => api.db('attempt').whereNotNull('settled_nano');
    const [{ count = 0 } = {}] = await settled().count();
    if (Number(count) <= calls) return undefined;
    const last = await settled().orderBy('started_at', 'desc').first('settled_nano', 'certainty');
    return { nano: BigInt(last.settled_nano), certainty: String(last.certainty) };
  });
}

async function play(exchange: Exchange, calls: number): Promise<Booked> {
  const { quirk, client, tokens } = exchange;
  provider.answer((request) => replyOf(request, quirk, tokens));
  const headers = { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json' };
  const left = new AbortController();
  const body = JSON.stringify(requestOf(exchange));
  const response = await fetch(`${api.url}${paths[client]}`, {
    method: 'POST',
    headers,
    body,
    signal: left.signal,
  });
  if (quirk.leaves) {
    await response.body?.getReader().read();
    left.abort();
  } else {
    await response.text();
  }
  return bookedAfter(calls, `call ${calls}, answered ${response.status}`);
}

interface Line {
  calls: number;
  exact: number;
  estimated: number;
  owed: bigint;
  booked: bigint;
}

function show(name: string, { calls, exact, estimated, owed, booked }: Line): string {
  const sums = [owed, booked].map((nano) => (Number(nano) / 1e9).toFixed(9).padStart(14)).join('');
  return `${name.padEnd(30)}${String(calls).padStart(5)}${String(exact).padStart(7)}${String(estimated).padStart(7)}${sums}`;
}

test(`${exchanges} calls are booked as the provider bills them, or as estimates`, async () => {
  const dice = createDice(seed);
  const lines = new Map<string, Line>();
  const wrong: object[] = [];
  const quirkNames = Object.keys(quirks);
  for (let at = 0; at < exchanges; at++) {
    const exchange = pickExchange(at, dice);
    const name = quirkNames[placeOf(at)] as string;
    const owed = billOf(exchange.tokens);
    const { nano, certainty } = await play(exchange, at);
    const line = lines.get(name) ?? { calls: 0, exact: 0, estimated: 0, owed: 0n, booked: 0n };
    lines.set(name, line);
    line.calls += 1;
    line.owed += owed;
    line.booked += nano;
    line[certainty === 'exact' ? 'exact' : 'estimated'] += 1;
    const { quirk: _, ...facts } = exchange;
    if (nano !== owed && certainty === 'exact')
      wrong.push({ name, owed: String(owed), nano: String(nano), ...facts });
  }
  const head = `${'quirk'.padEnd(30)}calls  exact  estim.   provider, USD  ledger, USD`;
  console.log([head, ...[...lines].map(([name, line]) => show(name, line))].join('\n'));
  expect(wrong).toEqual([]);
  for (const [name, { booked, owed, estimated, calls }] of lines) {
    if (estimated === 0) expect(booked, name).toBe(owed);
    if (estimated < calls) continue;
    expect(booked, name).toBeGreaterThanOrEqual(owed);
  }
}, 600_000);
