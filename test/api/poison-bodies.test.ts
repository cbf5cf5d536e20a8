/** Bodies made to exhaust their reader: each is refused or accepted within a second, whatever its values are. */

import { mostValues } from '@capstan/core/contracts/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { isLong } from '../support/long.ts';
import { countProcessorMs } from '../support/processor-time.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'c' });
  await send('/v1/plan', planOf('{"a":[]}')); // loads and compiles what every request needs
});
afterAll(() => api.close());

const megabytes = 8 * 1_048_576;
const deadlineMs = 1_000;
/** A busy machine works slower, even counted in processor time. */
const slack = 5;

const definition = JSON.stringify({ pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'c' }] });

function planOf(job: string): string {
  return `{"definition":${definition},"job":${job}}`;
}

function repeat(part: string, bytes: number): string {
  return `{"a":[${Array(Math.floor(bytes / (part.length + 1)))
    .fill(part)
    .join(',')}]}`;
}

async function send(path: string, body: string): Promise<{ outcome: unknown[]; spentMs: number }> {
  const spentMs = countProcessorMs();
  const answer = await api.call(path, { body, headers: { 'content-type': 'application/json' } });
  const { code } = (await answer.json()) as { code?: string };
  return { outcome: [answer.status, code], spentMs: spentMs() };
}

/** How each is counted: json-scan.test.ts. */
const parts = isLong ? ['[]', '{}', '1', '""', 'null', `${'['.repeat(10)}${']'.repeat(10)}`] : ['[]'];

const ways: Record<string, (job: string) => string> = {
  '/v1/plan': planOf,
  '/v1/runs': planOf,
  '/v1/runs/bulk': (job) => `{"runs":[${planOf(job)}]}`,
  '/v1/pipelines/validate': (job) => job,
};

describe.each(parts)('8 MiB of %s', (part) => {
  // All of them read bodies alike: request-rules.test.ts.
  test.each(isLong ? Object.keys(ways) : ['/v1/runs', '/v1/pipelines/validate'])(
    'are refused by %s before they are parsed',
    async (path) => {
      const body = ways[path]?.(repeat(part, megabytes - 1_000)) ?? expect.fail();
      const { outcome, spentMs } = await send(path, body);
      expect(outcome).toEqual([400, 'json_too_deep']);
      expect(spentMs).toBeLessThan(deadlineMs * slack);
    },
  );
});

describe('as many values as a body may hold', () => {
  const lists = repeat('[]', (mostValues - 10) * 3);
  const objects = repeat('{"a":1}', ((mostValues - 10) / 2) * 8);

  test.each([['empty lists', lists], ...(isLong ? [['objects', objects] as const] : [])] as const)(
    'are accepted: %s',
    async (_, job) => {
      const plan = await send('/v1/plan', planOf(job));
      const created = await send('/v1/jobs', `{"job":${job}}`);
      expect([plan.outcome[0], created.outcome[0]]).toEqual([200, 201]);
      expect(Math.max(plan.spentMs, created.spentMs)).toBeLessThan(deadlineMs * slack);
    },
  );

  test('in a place where there is nothing to be are refused', async () => {
    const keys = Array.from({ length: mostValues - 100 }, (_, n) => `"k${n}":1`).join(',');
    const { outcome, spentMs } = await send('/v1/plan', `{"definition":${definition},${keys}}`);
    expect(outcome).toEqual([422, 'request_invalid']);
    expect(spentMs).toBeLessThan(deadlineMs * slack);
  });

  test('as steps of a definition are refused', async () => {
    const steps = Array(100_000).fill('{}').join(',');
    const body = `{"definition":{"pipeline":"p","version":"1","steps":[${steps}]}}`;
    const { outcome, spentMs } = await send('/v1/plan', body);
    expect(outcome).toEqual([422, 'request_invalid']);
    expect(spentMs).toBeLessThan(deadlineMs * slack);
  });
});

test('a job may hold the same wherever it is sent', async () => {
  const keys = Array.from({ length: 5_000 }, (_, n) => `"k${n}":1`).join(',');
  const nested = `${'['.repeat(90)}${']'.repeat(90)}`;
  for (const job of [`{${keys}}`, `{"a":${nested}}`]) {
    const created = await send('/v1/jobs', `{"job":${job}}`);
    const run = await send('/v1/runs', planOf(job));
    expect([created.outcome[0], run.outcome[0]]).toEqual([201, 202]);
  }
});
