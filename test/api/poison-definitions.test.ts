/** Texts made to exhaust their checker: each is accepted or refused within a second, by the real route. */

import type { Validation } from '@capstan/core/contracts/pipeline-answers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { isLong } from '../support/long.ts';
import { countProcessorMs } from '../support/processor-time.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  const body = { pipeline: 'first', version: '1', steps: [{ id: 'a', capability: 'c' }] };
  await api.call('/v1/pipelines/validate', { body }); // loads and compiles what every request needs
});
afterAll(() => api.close());

const deadlineMs = 1_000;
/** A busy machine works slower, even counted in processor time: what is asked three times is worth its best, */
const tries = 3;
/** and its best may still be slow. `npm run bench -- attacks` measures alone. */
const slack = 5;

interface Checked {
  readonly status: number;
  readonly validation: Validation;
  readonly cpuMs: number;
  readonly wallMs: number;
}

async function check(body: unknown, type: string): Promise<Checked> {
  const [startedAt, countMs] = [performance.now(), countProcessorMs()];
  const answer = await api.call('/v1/pipelines/validate', { body, headers: { 'content-type': type } });
  const text = await answer.text();
  const [cpuMs, wallMs] = [countMs(), performance.now() - startedAt];
  return { status: answer.status, validation: JSON.parse(text), cpuMs, wallMs };
}

/** Asks again only when it took too long. */
async function checkAtBest(body: unknown, type = 'application/json'): Promise<Checked> {
  let best = await check(body, type);
  for (let asked = 1; asked < tries && best.cpuMs >= deadlineMs; asked++) {
    const again = await check(body, type);
    if (again.cpuMs < best.cpuMs) best = again;
  }
  return best;
}

function list<Item>(count: number, item: (n: number) => Item): Item[] {
  return Array.from({ length: count }, (_, n) => item(n));
}

function definition(steps: unknown, over: object = {}): string {
  return JSON.stringify({ pipeline: 'poison', version: '1', steps, ...over });
}

function aStep(n: number, over: object = {}) {
  return { id: `s${n}`, capability: 'c', ...over };
}

/** Steps of which each depends on all before it, as far as there are edges left. */
function dense(edges: number): unknown[] {
  let left = edges;
  return list(400, (n) => {
    const count = Math.min(n, left);
    left -= count;
    return aStep(n, { depends_on: list(count, (m) => `s${m}`) });
  });
}

const megabytes = 8 * 1_048_576;

const bomb = [
  'pipeline: poison',
  'version: "1"',
  'steps: [{id: a, capability: c}]',
  'labels: &a [x, x, x, x, x, x, x, x, x, x]',
  ...'bcdefghij'
    .split('')
    .map((name, at) => `${name}: &${name} [${Array(10).fill(`*${'abcdefghi'[at]}`).join(', ')}]`),
].join('\n');

const wideUnion = {
  type: 'object',
  properties: {
    x: {
      anyOf: list(600, (n) => ({
        type: 'object',
        properties: { [`p${n}`]: { const: n } },
        required: [`p${n}`],
      })),
    },
  },
};

function branches(depth: number): object {
  return depth === 0
    ? { type: 'string' }
    : { anyOf: [branches(depth - 1), { type: 'object', properties: { a: branches(depth - 1) } }] };
}

type Poison = [
  name: string,
  text: () => string,
  expected: { readonly status: number; readonly code?: string; readonly valid?: boolean },
  type?: string,
];

const poisons: Poison[] = [
  [
    'more steps than a definition may have',
    () => definition(list(isLong ? 66_000 : 10_001, (n) => ({ id: `s${n}`, capability: 'c' }))),
    { status: 200, code: 'value_invalid' },
  ],
  [
    '8 MiB of [ in YAML',
    () => '['.repeat(megabytes - 1),
    { status: 200, code: 'yaml_too_large' },
    'application/yaml',
  ],
  [
    'a union of 600',
    () =>
      definition(
        list(500, (n) =>
          aStep(n, { input: { x: `{{ job.x.q${n} ?? job.x.p${n} }}`, y: '{{ ( job.x == job.x ) }}' } }),
        ),
        { job_schema: wideUnion },
      ),
    { status: 200, code: 'schema_invalid' },
  ],
  [
    'unions in unions',
    () =>
      definition(
        list(isLong ? 2_000 : 500, (n) =>
          aStep(n, { when: `(job.${'a.'.repeat(8)}b${n} ?? job) == (job.a.a ?? 1)` }),
        ),
        { job_schema: { type: 'object', ...branches(8) } },
      ),
    { status: 200 },
  ],
  [
    'many questions, each with a schema of its own',
    () =>
      definition(
        list(isLong ? 3_000 : 500, (n) => ({
          id: `s${n}`,
          review: { title: 'ok?', schema: { type: 'object', properties: { [`p${n}`]: {} } } },
        })),
      ),
    { status: 200, code: 'schema_invalid' },
  ],
  [
    'one string of 8 MiB',
    () => definition([aStep(0, { description: 'x'.repeat(megabytes - 1_000) })]),
    { status: 400 },
  ],
  [
    'a condition as long as it may be',
    () => definition([aStep(0, { when: `${'!'.repeat(60)}job.a ${'&& !job.a '.repeat(6_500)}` })]),
    { status: 200, valid: true },
  ],
];

/** Of these the part that checks them has a test of its own: of graphs, definitions, and their texts. */
const longPoisons: Poison[] = [
  ['a million steps', () => definition(list(1_000_000, () => 0)), { status: 400 }],
  [
    '10,000 steps of 5 edges',
    () =>
      definition(list(10_000, (n) => aStep(n, { depends_on: list(Math.min(n, 5), (m) => `s${n - m - 1}`) }))),
    { status: 200, valid: true },
  ],
  [
    '50,000 expressions',
    () =>
      definition(
        list(10, (n) => aStep(n, { input: { x: list(5_000, (m) => `{{ job.a${m}.b ?? run.id }}`) } })),
      ),
    { status: 200, valid: true },
  ],
  ['8 MiB of [', () => '['.repeat(megabytes - 1), { status: 400 }],
  ['a graph of 50,000 edges', () => definition(dense(50_000)), { status: 200, valid: true }],
  ['a graph of 50,001 edges', () => definition(dense(50_001)), { status: 200, code: 'edges_limit' }],
  [
    'a cycle of 10,000 steps through expressions',
    () =>
      definition(list(10_000, (n) => aStep(n, { input: { x: `{{ steps.s${(n + 1) % 10_000}.output }}` } }))),
    { status: 200, code: 'cycle' },
  ],
  [
    '50,001 expressions',
    () => definition([aStep(0, { input: { x: list(50_001, () => '{{ job.a }}') } })]),
    { status: 200, code: 'expression_limit' },
  ],
  [
    '20,000 wrong names',
    () =>
      definition(
        list(10_000, (n) => aStep(n, { depends_on: [`step_${n}`], when: `steps.stop_${n}.output == 1` })),
      ),
    { status: 200, code: 'step_unknown' },
  ],
  ['depth', () => `{"pipeline":"p","version":"1","steps":${'['.repeat(1_000_000)}`, { status: 400 }],
  ['8 MiB of {', () => '{'.repeat(megabytes - 1), { status: 400 }],
  [
    '8 MiB of { in YAML',
    () => '{'.repeat(megabytes - 1),
    { status: 200, code: 'yaml_too_large' },
    'application/yaml',
  ],
  ['100,000 of [ in YAML', () => '['.repeat(100_000), { status: 200, code: 'too_deep' }, 'application/yaml'],
  ['100,000 of - in YAML', () => '- '.repeat(100_000), { status: 200, code: 'too_deep' }, 'application/yaml'],
  ['a bomb of anchors', () => bomb, { status: 200, code: 'yaml_alias' }, 'application/yaml'],
];

const figures: string[] = [];
afterAll(() => console.log(figures.join('\n')));

test.each([...poisons, ...(isLong ? longPoisons : [])])('%s', async (name, text, expected, type) => {
  const body = text();
  const { status, validation, cpuMs, wallMs } = await checkAtBest(body, type);
  figures.push(
    `${name}: ${cpuMs.toFixed(0)} ms of processor time, ${wallMs.toFixed(0)} ms, ${body.length} characters`,
  );
  expect(status).toBe(expected.status);
  if (expected.valid !== undefined)
    expect(
      validation.valid,
      JSON.stringify(validation.findings?.filter((f) => f.severity === 'error').slice(0, 3)),
    ).toBe(expected.valid);
  if (expected.code !== undefined)
    expect(validation.findings.map(({ code }) => code)).toContain(expected.code);
  expect(cpuMs).toBeLessThan(deadlineMs * slack);
});

test('pipelines that run each other in a circle', async () => {
  for (let n = 0; n < 5; n++) {
    const steps = [{ id: 'a', pipeline: `circle_${n + 1}@latest` }];
    await api.db('definition').insert({
      digest: `circle${n}`,
      body: JSON.stringify({ pipeline: `circle_${n}`, version: '1', steps }),
    });
    await api
      .db('pipeline_version')
      .insert({ project_id: api.projectId, pipeline: `circle_${n}`, version: '1', digest: `circle${n}` });
  }
  const body = {
    pipeline: 'circle_5',
    version: '1',
    steps: list(2_000, (n) => ({ id: `s${n}`, pipeline: `circle_${n % 5}@latest` })),
  };
  const { validation, cpuMs } = await checkAtBest(body);
  const { findings } = validation;
  expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(['pipeline_cycle', 'findings_cut']));
  expect(cpuMs).toBeLessThan(deadlineMs * slack);
});
