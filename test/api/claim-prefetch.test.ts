import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, execOn, registerInstance } from '../support/direct-calls.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

interface Counts {
  readonly open: number;
  readonly released: number;
  readonly settled: number;
  readonly reserved: number;
}

async function countAttempts(capability: string): Promise<Counts> {
  const { rows } = await api.db.raw<{ rows: [Counts] }>(
    `select (count(*) filter (where state in ('reserved', 'dispatched')))::int as open,
       (count(*) filter (where state = 'released'))::int as released,
       (count(*) filter (where state = 'settled'))::int as settled,
       coalesce((select sum(reserved_nano)::int from budget where scope like '%' || ?), 0) as reserved
     from attempt where capability = ?`,
    [`:${capability}`, capability],
  );
  return rows[0];
}

const price = { type: 'per_call', rate_usd: 0.01 } as const;

async function callInTurn(capability: string, times: number, headers: Record<string, string> = {}) {
  const answers = [];
  for (let n = 0; n < times; n++) {
    answers.push(await execOn(api, capability, { body: { input: { n } }, headers }));
  }
  return answers;
}

describe('calls one after the other', () => {
  test('use claims made ahead, each for its own input and with a key of its own', async () => {
    const instance = await registerInstance(api, { name: 'stream', cost_model: price, max_concurrency: 64 });
    const answers = await callInTurn('stream', 20);
    expect(answers.map(({ body }) => body.output)).toEqual(answers.map((_, n) => ({ n })));
    expect(new Set(instance.execs.map((exec) => exec.headers['idempotency-key'])).size).toBe(20);
    const decisions = answers.map(({ body }) => body.routing?.decision_id);
    expect(new Set(decisions).size).toBe(20);
    const { rows } = await api.db.raw(
      `select count(*)::int as ahead from attempt a, attempt b
       where a.capability = 'stream' and b.capability = 'stream' and a.state = 'settled'
         and a.started_at < b.finished_at and b.started_at < a.started_at`,
    );
    expect(rows[0].ahead).toBeGreaterThan(5);
    await waitFor('what is left to be given back', async () => {
      const { open, reserved } = await countAttempts('stream');
      return open === 0 && reserved === 0;
    });
    const { settled, released } = await countAttempts('stream');
    expect(settled).toBe(20);
    expect(released).toBeLessThan(20);
    await instance.stop();
  });

  test('spend a limit to the last cent: none is made ahead of money that is short', async () => {
    const instance = await registerInstance(api, { name: 'scarce', cost_model: price, max_concurrency: 64 });
    const { headers } = await aLimitedProject(api, 0.09);
    const answers = await callInTurn('scarce', 10, headers);
    expect(answers.map(({ status }) => status)).toEqual([...Array(9).fill(200), 402]);
    expect((await countAttempts('scarce')).released).toBe(0);
    await instance.stop();
  });

  test('leave an instance alone that is half full', async () => {
    const instance = await registerInstance(api, { name: 'narrow', max_concurrency: 1 });
    await callInTurn('narrow', 10);
    expect(await countAttempts('narrow')).toMatchObject({ released: 0 });
    await instance.stop();
  });

  test('are not made by a claim whose instance is gone', async () => {
    const [first, second] = [
      await registerInstance(api, { name: 'moved', max_concurrency: 64 }),
      await registerInstance(api, { name: 'moved', cost_model: price, max_concurrency: 64 }),
    ];
    await callInTurn('moved', 5);
    await first.stop();
    await api.db('instance').where({ endpoint: first.endpoint }).update({ state: 'deregistered' });
    await waitFor('the router to know it', async () => {
      const { body } = await execOn(api, 'moved', { body: { input: {} } });
      return body.routing?.chosen === second.endpoint;
    });
    const answers = await callInTurn('moved', 5);
    expect(answers.map(({ body }) => body.routing?.chosen)).toEqual(Array(5).fill(second.endpoint));
    await second.stop();
  });
});
