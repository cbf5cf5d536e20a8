import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Json } from '@capstan/core/contracts/primitives';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { preparePipeline } from '@capstan/core/mock-run/prepare-run';
import { readMocks } from '@capstan/core/mock-run/read-mocks';
import { findDifferences, runLocally } from '@capstan/core/mock-run/run-locally';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { exampleMocks, examplePipeline } from '../src/pages/edit/example.ts';
import { type FormerRun, mocksOfRun, saveMocks, writeMocks } from '../src/pages/edit/mocks-model.ts';
import type { LiveSpecs } from '../src/worker/messages.ts';
import { tryText } from '../src/worker/try-text.ts';

function aStep(step: Partial<RunStep> & Pick<RunStep, 'id'>): RunStep {
  return {
    state: 'succeeded',
    attempts: 1,
    revision: 0,
    cost_usd: 0,
    started_at: '2026-01-01T00:00:00.000Z',
    finished_at: '2026-01-01T00:00:02.500Z',
    ...step,
  };
}

const nothingRegistered: LiveSpecs = {};
const text = examplePipeline;

function theExample(outputs: Readonly<Record<string, Json>>): FormerRun {
  const steps = [
    aStep({ id: 'join', capability: 'concat' }),
    aStep({ id: 'covers', capability: 'thumbnail', items: { succeeded: 2 } }),
    aStep({ id: 'publish', review: 'May it be published?' }),
  ];
  return {
    run: { run_id: 'run_1', steps },
    job: { clips: [{ media_store_path: 'media://j/a.mp4' }], moments: [0, 500] },
    outputs,
    below: [],
  };
}

/** As the command line reads and judges both files. */
async function testWithMocks(mocksText: string) {
  const { mocks, findings } = readMocks(mocksText, 'application/yaml');
  if (mocks === null) throw new Error(JSON.stringify(findings));
  const { definition } = preparePipeline({ text, type: 'application/yaml' }, mocks, []);
  if (definition === null || mocks.expect === undefined) throw new Error('not complete');
  const result = await runLocally(definition, mocks.job ?? {}, mocks);
  return { result, differences: findDifferences(mocks.expect, result) };
}

async function save(mocks: string, specs: LiveSpecs = nothingRegistered): Promise<string> {
  const { result, problems } = await tryText({ text, mocks, job: {}, specs, pipelines: [] });
  const facts = { knownCapabilities: null, strict: false };
  const { definition } = readDefinition({ text, contentType: null }, facts);
  if (result === null || definition === null) throw new Error(problems.join());
  return saveMocks({ text: mocks, definition, specs, pipelines: [], result });
}

const outputs = {
  join: { output_path: 'media://j/reel.mp4' },
  covers: [{ output_path: 'media://j/c0.jpg' }, { output_path: 'media://j/c1.jpg' }],
  publish: { approved: true },
};

test('steps answer what they answered in the run, items in their order', async () => {
  const { result, differences } = await testWithMocks(
    await save(writeMocks(mocksOfRun(theExample(outputs), nothingRegistered), 'run_1')),
  );
  expect(differences).toEqual([]);
  const yielded = Object.fromEntries(result.steps.map(({ id, item, output }) => [`${id}.${item}`, output]));
  expect(yielded).toMatchObject({
    'join.0': outputs.join,
    'covers.1': outputs.covers[0],
    'covers.2': outputs.covers[1],
    'publish.0': outputs.publish,
  });
  expect(result.outcome).toBe('succeeded');
});

/** A file has no empty key, in YAML as in JSON. */
const outputOfACall = fc
  .jsonValue({ noUnicodeString: false, maxDepth: 3 })
  .filter((value) => !/"(__proto__)?":/.test(JSON.stringify(value)));

test('any output is saved such that the command line reads the same', async () => {
  await fc.assert(
    fc.asyncProperty(outputOfACall, async (output_path) => {
      const given = {
        ...outputs,
        join: { output_path: output_path as Json, braces: '{{ not.an expression' },
      };
      const saved = await save(writeMocks(mocksOfRun(theExample(given), nothingRegistered), 'run_1'));
      const { result, differences } = await testWithMocks(saved);
      expect(differences).toEqual([]);
      expect(result.steps.find(({ id }) => id === 'join')?.output).toEqual(given.join);
    }),
    { numRuns: runs(6) },
  );
});

test('the saved text has the live capabilities that the mocks left out, and keeps comments', async () => {
  const live = (output: Json) => ({
    description: '',
    input: { type: 'object' },
    output: {
      type: 'object',
      required: ['output_path'],
      properties: { output_path: { const: output } },
    },
    instances: [
      {
        version: '1.0.0',
        tags: [],
        cost_model: { type: 'per_call' as const, rate_usd: 0.25 },
        max_concurrency: 1,
      },
    ],
  });
  const specs = { concat: live('a'), thumbnail: live('b'), unused: live('d') };
  const mocks =
    '# mine\njob: { clips: [{ media_store_path: "media://j/a.mp4" }], moments: [0] }\ncapabilities: {}\nreviews:\n  publish: [{ action: output, output: 1 }]\n';
  const saved = await save(mocks, specs);
  expect(saved).toMatch(/^# mine\n/);
  expect(saved).not.toContain('unused');
  const { result, differences } = await testWithMocks(saved);
  expect([differences, result.output, result.cost_usd]).toEqual([[], { video: 'a', covers: ['b'] }, 0.5]);
});

test('a step that failed fails again, and a run without reviews mocks no answer of a person', () => {
  const former: FormerRun = {
    run: {
      run_id: 'run_1',
      steps: [
        aStep({
          id: 'a',
          capability: 'one',
          state: 'failed',
          error: { code: 'input_rejected', message: 'no' } as never,
        }),
        aStep({ id: 'b', capability: 'one', state: 'skipped', started_at: null }),
        aStep({ id: 'c', review: 'May it?', state: 'failed' }),
      ],
    },
    job: {},
    outputs: {},
    below: [],
  };
  expect(mocksOfRun(former, nothingRegistered)).toEqual({
    job: {},
    capabilities: { one: { replies: [{ step: 'a', error: { status: 422, message: 'no' } }, {}] } },
    reviews: { c: [{ after: '2500ms', action: 'reject' }] },
  });
});

test('the example that the editor begins with succeeds with its mocks, and nothing is to be mended in it', async () => {
  const { result, problems } = await tryText({
    text,
    mocks: exampleMocks,
    job: {},
    specs: nothingRegistered,
    pipelines: [],
  });
  expect(problems).toEqual([]);
  expect(result).toMatchObject({
    outcome: 'succeeded',
    output: { video: 'media://job_local/reel.mp4', covers: expect.objectContaining({ length: 3 }) },
  });
  const { mocks } = readMocks(exampleMocks, 'application/yaml');
  if (mocks === null) throw new Error('the mocks are no mocks');
  expect(preparePipeline({ text, type: 'application/yaml' }, mocks, []).findings).toEqual([]);
});

const inner = `pipeline: scene
version: "1.0"
steps:
  - id: cut
    capability: trim
    input: { at: "{{ job.at }}" }
  - id: ask
    depends_on: [cut]
    review: { title: May it? }
output: "{{ steps.cut.output }}"
`;

const outer = `pipeline: film
version: "1.0"
steps:
  - id: scenes
    pipeline: scene@latest
    for_each: { items: "{{ job.moments }}" }
    input: { at: "{{ item }}" }
  - id: join
    capability: concat
    input: { parts: "{{ steps.scenes.output }}" }
output: "{{ steps.join.output }}"
`;

function define(source: string): PipelineDefinition {
  const facts = { knownCapabilities: null, strict: false };
  const { definition, findings } = readDefinition({ text: source, contentType: null }, facts);
  if (definition === null) throw new Error(JSON.stringify(findings));
  return definition;
}

test('the steps of runs that it started answer too, in the order of the items, and the file has their pipeline', async () => {
  const scene = (run_id: string, frame: number) => ({
    run: {
      run_id,
      steps: [aStep({ id: 'cut', capability: 'trim' }), aStep({ id: 'ask', review: 'May it?' })],
    },
    outputs: { cut: { frame }, ask: 'yes' },
  });
  const former: FormerRun = {
    run: {
      run_id: 'run_1',
      steps: [
        aStep({ id: 'scenes', pipeline: 'scene@latest', items: { succeeded: 2 } }),
        aStep({ id: 'join', capability: 'concat' }),
      ],
    },
    job: { moments: [3, 5] },
    outputs: { join: { ok: true } },
    below: [scene('run_2', 75), scene('run_3', 125)],
  };
  const mocks = writeMocks(mocksOfRun(former, nothingRegistered), 'run_1');
  const pipelines = [define(inner)];
  const given = { text: outer, mocks, job: {}, specs: nothingRegistered };
  const { result, problems } = await tryText({ ...given, pipelines });
  if (result === null) throw new Error(problems.join());
  expect(result).toMatchObject({ outcome: 'succeeded', output: { ok: true }, calls: { trim: 2, concat: 1 } });
  const scenes = result.steps.filter(({ id, item }) => id === 'scenes' && item > 0);
  expect(scenes.map(({ output }) => output)).toEqual([{ frame: 75 }, { frame: 125 }]);

  const specs = nothingRegistered;
  const saved = saveMocks({ text: mocks, definition: define(outer), specs, pipelines, result });
  const again = await tryText({ ...given, mocks: saved, pipelines: [] });
  expect(again).toMatchObject({ problems: [], differences: [], result: { outcome: 'succeeded' } });
  const twice = saveMocks({ text: saved, definition: define(outer), specs, pipelines, result });
  expect(readMocks(twice, 'application/yaml').mocks?.pipelines).toHaveLength(1);
});
