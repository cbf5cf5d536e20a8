/**
 * Streams of models in the protocol of their client whose budget ends on the way: the client gets the end of its
 * protocol, the provider loses its client at once, and the books are exact.
 */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DecisionDetail } from '@capstan/core/contracts/decision';
import { addLength, type Lengths } from '@capstan/core/money/holds';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { listBreaches, watchCommits } from '../support/commit-watch.ts';
import { aLimitedProject } from '../support/direct-calls.ts';
import { findDrift, findViolations } from '../support/invariants.ts';
import type { ModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let provider: Server;
let models: ReturnType<typeof createServedModels>;

/** The provider: it writes until its client leaves. */
const calls: { written: number; isStopping: boolean }[] = [];
let event: (at: number) => string = () => '';

/** Of its tokens. */
const aSecond = 250;
/** Tokens that a call may have used unseen; its worst case is sixteen times that. */
const mostAhead = 256;
const mostQuestionNano = 2_500_000;
/** Two bytes of text count one token. */
const seenPerWord = 2;

async function writeOn(response: ServerResponse): Promise<void> {
  const call = { written: 0, isStopping: false };
  calls.push(call);
  response.on('close', () => {
    call.isStopping = true;
  });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (; !call.isStopping && call.written < 20_000; call.written++) {
    if (!response.write(event(call.written)))
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
    await api.db.raw('select pg_sleep(0.004)'); // at most 250 tokens a second
  }
  response.end();
}

interface Spoken {
  readonly path: string;
  readonly model: string;
  readonly request: object;
  readonly event: (at: number) => string;
  /** What ends an answer that has reached its limit of length. */
  readonly ends: readonly RegExp[];
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;
const messages = [{ role: 'user', content: 'go on' }];

const protocols: readonly (readonly [string, Spoken])[] = [
  [
    'openai.chat',
    {
      path: '/openai/v1/chat/completions',
      model: 'endless',
      request: { max_tokens: 4_096, messages },
      event: () =>
        data({
          id: 'c',
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta: { content: 'word' } }],
        }),
      ends: [/"finish_reason":"length"/, /data: \[DONE\]\s*$/],
    },
  ],
  [
    'openai.responses',
    {
      path: '/openai/v1/responses',
      model: 'endless',
      request: { max_output_tokens: 4_096, store: false, input: 'go on' },
      event: (at) =>
        at === 0
          ? named({ type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } })
          : named({
              type: 'response.output_text.delta',
              item_id: 'i',
              output_index: 0,
              content_index: 0,
              delta: 'word',
            }),
      ends: [/"type":"response\.incomplete"/, /"reason":"max_output_tokens"/],
    },
  ],
  [
    'anthropic.messages',
    {
      path: '/anthropic/v1/messages',
      model: 'endless-messages',
      request: { max_tokens: 4_096, messages },
      event: (at) =>
        at === 0
          ? named({
              type: 'message_start',
              message: { id: 'm', model: 'm', usage: { input_tokens: 9, output_tokens: 1 } },
            })
          : at === 1
            ? named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
            : named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'word' } }),
      ends: [/"type":"content_block_stop"/, /"stop_reason":"max_tokens"/, /event: message_stop\n[^\n]*\s*$/],
    },
  ],
];

const lengths = Array.from({ length: 64 }, (_, at) => 80 + at).reduce<Lengths>(addLength, []);

beforeAll(async () => {
  api = await startTestApi();
  await watchCommits(api.db);
  provider = createServer((_, response) => {
    writeOn(response).catch((error: Error) => response.destroy(error));
  });
  await once(provider.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
  models = createServedModels(api, { url } as ModelServer);
  const file = { cost: { type: 'per_call', rate_usd: 1 }, stops: true };
  const part = { prices: { input: 1, output: 10 } };
  await models.start('model.endless', {
    file,
    part: { ...part, protocols: ['openai.chat', 'openai.responses'] },
  });
  await models.start('model.endless-messages', { kind: 'anthropic', file, part });
});
afterAll(async () => {
  await models.stop();
  provider.closeAllConnections();
  provider.close();
  await api.close();
});

/** The router has seen such answers before. */
beforeAll(async () => {
  await api.db('instance').update({ lengths });
  await api.refreshFleet();
});

describe.each(protocols)('a stream of %s', (_, spoken) => {
  test.each([0.009, 0.012])('is stopped where %d USD end, and so is its provider', async (limitUsd) => {
    event = spoken.event;
    const { headers, projectId } = await aLimitedProject(api, limitUsd);
    const before = calls.length;
    const body = { model: spoken.model, stream: true, ...spoken.request };
    const answered = await api.call(spoken.path, { body, headers });
    const text = await answered.text();
    expect(answered.status).toBe(200);
    for (const end of spoken.ends) expect(text).toMatch(end);
    expect(text).toContain('\n\n: capstan budget_reserved: ');
    await waitFor('the provider to lose its client', () => calls[before]?.isStopping);
    const written = calls[before]?.written ?? 0;
    expect(written - text.split('word').length).toBeLessThan(aSecond);
    await expectBooks(projectId, { limitUsd, billedNano: (written - 2) * 10_000 });
    const decision = await api.call(`/v1/decisions/${answered.headers.get('x-capstan-decision')}`, {
      headers,
    });
    const { stopped, held_usd, settled_usd } = (await decision.json()) as DecisionDetail;
    expect(stopped).toBe('budget');
    expect(settled_usd).toBeLessThanOrEqual(held_usd as number);
  });

  test.each([
    { limitUsd: 0.02, onBudget: 'stop' },
    { limitUsd: 100, onBudget: 'stop' },
    { limitUsd: 100, onBudget: 'refuse' },
  ])(
    'whose client leaves costs what it used, by $onBudget of $limitUsd USD',
    async ({ limitUsd, onBudget }) => {
      event = spoken.event;
      const { headers, projectId } = await aLimitedProject(api, limitUsd);
      const before = calls.length;
      const leaving = new AbortController();
      const answered = await fetch(`${api.url}${spoken.path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'x-capstan-on-budget': onBudget },
        body: JSON.stringify({ model: spoken.model, stream: true, ...spoken.request }),
        signal: leaving.signal,
      });
      await waitFor('parts', () => (calls[before]?.written ?? 0) > 20);
      leaving.abort();
      await waitFor('the provider to lose its client', () => calls[before]?.isStopping);
      const billedNano = ((calls[before]?.written ?? 0) - 2) * 10_000;
      const spent = await expectBooks(projectId, { limitUsd, billedNano });
      expect(spent).toBeLessThan(seenPerWord * (billedNano + 20_000) + mostAhead * 10_000 + mostQuestionNano);
      const decision = await api.call(`/v1/decisions/${answered.headers.get('x-capstan-decision')}`, {
        headers,
      });
      const {
        stopped,
        reserved_usd,
        held_usd = reserved_usd,
        settled_usd,
      } = (await decision.json()) as DecisionDetail;
      expect(stopped).toBeUndefined();
      expect(settled_usd).toBeLessThanOrEqual(held_usd); // a piece may come after the end
    },
  );
});

async function expectBooks(
  projectId: string,
  { limitUsd, billedNano }: { readonly limitUsd: number; readonly billedNano: number },
): Promise<number> {
  await waitFor('its end', async () => {
    const open = await api.db('attempt').where({ project_id: projectId }).whereNull('finished_at');
    return open.length === 0;
  });
  const [row] = await api.db('budget').where({ scope: `project:${projectId}` });
  const [spent, reserved] = [Number(row.spent_nano), Number(row.reserved_nano)];
  expect(reserved).toBe(0);
  expect(spent).toBeGreaterThanOrEqual(billedNano);
  expect(spent).toBeLessThanOrEqual(limitUsd * 1e9);
  expect(await listBreaches(api.db)).toEqual([]);
  expect(await findDrift(api.db)).toEqual([]);
  expect(await findViolations(api.db, [])).toEqual([]);
  return spent;
}
