/**
 * A capability in Python whose schemas pydantic writes: a set, a recursive model, unions that may be null, a constrained
 * text and a literal. Wrong inputs are repaired by these schemas.
 */
import { fileURLToPath } from 'node:url';
import { checkCapability } from '@capstan/capability/conformance';
import type { CapabilityDetail, CapabilitySpec } from '@capstan/core/contracts/capability';
import type { Plan } from '@capstan/core/contracts/plan';
import type { InputVerdict } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findPython, type RegisteredProgram, startPython } from '../support/foreign-programs.ts';
import { isLong } from '../support/long.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const script = fileURLToPath(new URL('../support/pydantic_capability.py', import.meta.url));
const python = await findPython();

let capstan: SharedCapstan;
let instance: RegisteredProgram;
let endpoint: string;

const leaf = { name: 'mast', weight: 2 };
const frame = { kind: 'crop', width: 320, height: 240 };
const job = {
  title: 'sea-side',
  quality: 'final',
  tags: ['blue'],
  tree: { name: 'ship', children: [{ name: 'deck', children: [leaf] }] },
  frame,
  preview: { kind: 'scale', percent: 50 },
};

/** The job as pydantic writes it, with its defaults. */
const received = {
  ...job,
  tree: {
    name: 'ship',
    weight: 1,
    children: [{ name: 'deck', weight: 1, children: [{ ...leaf, children: [] }] }],
  },
};

function withLeaf(changed: object): object {
  return { ...job, tree: { name: 'ship', children: [{ name: 'deck', children: [changed] }] } };
}

/** A step whose inputs are known only when the run begins: an error of a definition would be refused before. */
function inputFrom(path: string) {
  return Object.fromEntries(Object.keys(job).map((key) => [key, `{{ ${path}.${key} }}`]));
}

function stepsOf(escalate: object) {
  const render = { id: 'render', capability: 'pydantic.render', input: inputFrom('job'), escalate };
  return [render, { ...render, id: 'again', input: inputFrom('steps.render.output.job') }];
}

function planOf(input: object) {
  const [render, again] = stepsOf({});
  const definition = { pipeline: 'counted', version: '1', steps: [{ ...render, input }, again] };
  return capstan.request<Plan>('POST', '/v1/plan', { definition, job });
}

async function stepOf({ run_id }: Run): Promise<StepDetail> {
  return (await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/render`)).body;
}

describe.skipIf(python.path === null)(`a capability by pydantic (${python.reason})`, () => {
  beforeAll(async () => {
    capstan = await shareCapstan();
    const router = { ROUTER_URL: capstan.url, ROUTER_TOKEN: capstan.key };
    instance = await startPython(python, script, router);
    endpoint = instance.endpoint;
  });
  afterAll(async () => {
    await instance?.end();
  });

  test('keeps the contract and is registered with the schemas that pydantic wrote', async () => {
    expect((await checkCapability(endpoint)).filter(({ ok }) => !ok)).toEqual([]);
    const spec = (await (await fetch(`${endpoint}/spec`)).json()) as CapabilitySpec;
    expect(spec.input).toMatchObject({
      properties: {
        tags: { uniqueItems: true },
        frame: { anyOf: [{ discriminator: { propertyName: 'kind' } }, { type: 'null' }] },
      },
      $defs: { Node: { properties: { children: { items: { $ref: '#/$defs/Node' } } } } },
    });
    const registered = await waitFor('the registered schemas', async () => {
      const { body } = await capstan.request<CapabilityDetail>('GET', '/v1/capabilities/pydantic.render');
      return body.specs.length > 0 ? body : null;
    });
    expect(registered).toMatchObject({ instances: [{ endpoint, state: 'up' }] });
    expect(registered.specs.map(({ spec: { input, output } }) => [input, output])).toEqual([
      [spec.input, spec.output],
    ]);
  });

  test('is planned, and what it returns is the input of another step', async () => {
    const { status, body } = await planOf(inputFrom('job'));
    expect({ status, findings: body.findings, missing: body.missing }).toEqual({
      status: 200,
      findings: [],
      missing: [],
    });
    expect(body.steps.map(({ id, chosen }) => ({ id, chosen }))).toEqual([
      { id: 'render', chosen: endpoint },
      { id: 'again', chosen: endpoint },
    ]);
    const run = await capstan.submit(stepsOf({ on_exhausted: 'fail' }), job);
    expect(await capstan.ended(run.run_id)).toMatchObject({
      state: 'succeeded',
      output: { again: { job: received, nodes: 3 } },
      steps: [{ revision: 0, attempts: 1 }, { revision: 0 }],
    });
  });

  test('a misspelt key of an optional field is found in a plan, and repaired in an input', async () => {
    const { quality, ...others } = inputFrom('job');
    const { status, body } = await planOf({ ...others, qualtiy: quality });
    expect(status).toBe(200);
    expect(body.findings).toMatchObject([
      { code: 'property_unknown', severity: 'error', suggestion: 'did you mean "quality"?' },
    ]);
    const { quality: _, ...rest } = job;
    const input = { ...rest, qualtiy: job.quality };
    const path = '/v1/capabilities/pydantic.render/check';
    expect((await capstan.request<InputVerdict>('POST', path, { input })).body).toMatchObject({
      valid: false,
      proposals: [{ input: job, source: 'repair' }],
    });
  });

  const wrong: readonly (readonly [string, object])[] = [
    ['a misspelt key', { ...job, frame: { kind: 'crop', widht: 320, height: 240 } }],
    ['a misspelt key of a recursive model', withLeaf({ name: 'mast', wieght: 2 })],
    ['a number as text', { ...job, frame: { ...frame, width: '320' } }],
    [
      'a number as text in a union without a discriminator',
      { ...job, preview: { kind: 'scale', percent: '50' } },
    ],
    ['a number as text in a recursive model', withLeaf({ name: 'mast', weight: '2' })],
    ['a misspelt literal', { ...job, quality: 'finnal' }],
    ['a misspelt discriminator', { ...job, frame: { ...frame, kind: 'corp' } }],
    ['a text where a set is wanted', { ...job, tags: 'blue' }],
    ['an item twice in a set', { ...job, tags: ['blue', 'blue'] }],
    ['white space around a constrained text', { ...job, title: ' sea-side ' }],
  ];
  test.each(wrong.slice(0, isLong ? wrong.length : 1))('%s is repaired by the schema', async (_, input) => {
    const steps = stepsOf({ repair: 'apply', max_level: 0, on_exhausted: 'fail' });
    const { run_id } = await capstan.submit(steps, input);
    const run = await capstan.ended(run_id);
    expect(run).toMatchObject({ state: 'succeeded', output: { again: { job: received, nodes: 3 } } });
    expect(run.steps[0]).toMatchObject({ revision: 1, cost_usd: 0 });
    const detail = await stepOf(run);
    expect(detail.input).toEqual(input);
    expect(detail.revisions).toMatchObject([{ revision: 1, source: 'repair' }]);
  });

  const unsure: readonly (readonly [string, object, readonly Partial<typeof job>[]])[] = [
    [
      'a text that may hold several items',
      { tags: 'red, green' },
      [{ tags: ['red', 'green'] }, { tags: ['red, green'] }],
    ],
    ['another case of a constrained text', { title: 'Sea-Side' }, [{ title: 'sea-side' }]],
  ];
  test.each(unsure.slice(0, isLong ? unsure.length : 1))(
    '%s is proposed to a person and not applied',
    async (_, fault, changes) => {
      const input = { ...job, ...fault };
      const run = await capstan.submit(stepsOf({ repair: 'apply', max_level: 0 }), input);
      const review = await reviewOf(capstan, run.run_id, 'render');
      expect(review).toMatchObject({ kind: 'escalation', state: 'open', payload: { input } });
      expect(review.payload.proposals).toMatchObject(
        changes.map((change) => ({ input: { ...job, ...change }, source: 'repair' })),
      );
      expect((await stepOf(run)).revisions).toBeUndefined();
      await decide(capstan, review, { action: 'approve', proposal: 0 });
      const approved = { ...received, ...changes[0] };
      const tags = expect.arrayContaining(approved.tags); // the order of a set in Python is random
      expect(await capstan.ended(run.run_id)).toMatchObject({
        state: 'succeeded',
        output: { again: { job: { ...approved, tags } } },
      });
      expect((await stepOf(run)).revisions).toMatchObject([{ source: `review:${review.review_id}` }]);
    },
  );

  test('an input that only pydantic refuses fails with its first error', async () => {
    const input = { ...job, tree: { name: 'ship', children: [leaf, leaf] } };
    const steps = stepsOf({ repair: 'apply', max_level: 0, on_exhausted: 'fail' });
    const run = await capstan.submit(steps, input);
    const ended = await capstan.ended(run.run_id);
    expect({ state: ended.state, error: ended.steps[0]?.error?.message }).toEqual({
      state: 'failed',
      error: expect.stringContaining('tree.children: Value error, two children have the same name'),
    });
  });
});
