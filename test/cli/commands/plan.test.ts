import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Plan } from '@capstan/core/contracts/plan';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-plan-'));
});
afterAll(() => rm(folder, { recursive: true }));

const free = { min: 0, expected: 0, worst: 0 };
const thePlan: Plan = {
  pipeline: 'trailer',
  version: '2',
  missing: ['ghost'],
  within_ceiling: false,
  budget_ceiling_usd: 0.22,
  steps: [
    {
      id: 'join',
      capability: 'concat',
      happens: 'yes',
      chosen: 'http://a.test',
      reason: 'it is free',
      candidates: [],
      dispatch: { how: 'inline', code: 'short', message: 'its calls are short' },
      cost_usd: { min: 0.2, expected: 0.25, worst: 1.5 },
      duration_ms: 1_200,
    },
    {
      id: 'each',
      capability: 'ghost',
      happens: 'unknown',
      items: null,
      chosen: null,
      reason: 'none',
      candidates: [],
      dispatch: { how: 'queued', code: 'unknown', message: 'nothing is known' },
      cost_usd: free,
      duration_ms: 30_000,
    },
    {
      id: 'ask',
      review: 'Good?',
      happens: 'no',
      chosen: null,
      reason: 'left out',
      candidates: [],
      cost_usd: free,
      duration_ms: 0,
    },
  ],
  cost_usd: { min: 0.2, expected: 0.25, worst: 1.5 },
  limit_usd: 15_000,
  duration_ms: 42_000,
  critical_path: { steps: ['join', 'each'], duration_ms: 31_200 },
  findings: [
    { severity: 'warning', code: 'ceiling_exceeded', pointer: '', message: 'the worst case is 1.5 USD' },
  ],
};

const valid = { valid: true, findings: [], graph: null };

/** @returns what was printed and asked */
async function capstan(words: readonly string[], plan: Plan) {
  const asked: [string, unknown][] = [];
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push([`${request.method} ${request.url}`, body.startsWith('{') ? JSON.parse(body) : body]);
    response.end(JSON.stringify(request.url?.includes('validate') ? valid : plan));
  });
  const { shell, seen } = aShell();
  await runCapstan(['plan', ...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

it('shows every step, the cost and the longest chain, and exits 1 when it is expected to cost more than its ceiling', async () => {
  const words = ['trailer', '--job', '{"n": 1}', '-v', '2', '-p', 'batch', '--budget', '0.22'];
  const { stdout, exitCode, asked } = await capstan(words, thePlan);
  const body = { version: '2', job: { n: 1 }, priority: 'batch', budget_ceiling_usd: 0.22 };
  expect(asked).toEqual([['POST /v1/pipelines/trailer/plan', body]]);
  expect(exitCode).toBe(1);
  expect(stdout).toBe(
    [
      'trailer@2',
      'STEP  WHAT    HAPPENS  ITEMS  CHOSEN         HOW               TIME    MIN  EXPECTED  WORST',
      'join  concat  yes             http://a.test  inline            1.2s  $0.20     $0.25  $1.50',
      'each  ghost   maybe        ?  nobody         queued  30.0s per item     $0        $0     $0',
      'ask   review  no',
      'cost: at least $0.20, about $0.25, at worst $1.50; the expected cost is above the ceiling of $0.22',
      'time: about 42.0s: join → each, with one item of each',
      'concat inline: its calls are short',
      'ghost queued: nothing is known',
      'no instance is registered for: ghost',
      'warning ceiling_exceeded the worst case is 1.5 USD\n',
    ].join('\n'),
  );
});

it('exits 0 when only the worst case is above the ceiling, and warns', async () => {
  const { stdout, exitCode } = await capstan(['trailer', '--ceiling', '1'], {
    ...thePlan,
    budget_ceiling_usd: 1,
  });
  expect(exitCode).toBe(0);
  expect(stdout).toContain('at worst $1.50; only the worst case is above the ceiling of $1.00\n');
});

it('plans a file without storing it, and keeps a missing job open', async () => {
  const file = join(folder, 'p.yaml');
  await writeFile(file, 'pipeline: p\nversion: "1"\nsteps:\n  - id: a\n    capability: concat\n');
  const good: Plan = { ...thePlan, within_ceiling: true, budget_ceiling_usd: null };
  const { stdout, exitCode, asked } = await capstan([file, '--json'], good);
  const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'concat' }] };
  expect(asked[1]).toEqual(['POST /v1/plan', { definition }]);
  expect([exitCode, JSON.parse(stdout)]).toEqual([0, good]);
});
