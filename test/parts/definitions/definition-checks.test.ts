import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { digestDefinition } from '@capstan/core/definitions/submission';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { insertSpec } from '../../../src/db/instance/capability-spec.ts';
import { setAlias } from '../../../src/db/pipeline.ts';
import { checkForRun } from '../../../src/parts/definitions/definition-checks.ts';
import type { CheckCtx } from '../../../src/parts/definitions/definition-facts.ts';
import { submitPipeline, validatePipeline } from '../../../src/use-cases/pipelines/pipelines.ts';
import { useDatabase } from '../../support/database.ts';
import { anInstance, aProject } from '../../support/factories.ts';
import { aCheckCtx } from '../../support/intake.ts';

const { db } = useDatabase();

let projectId: string;
let ctx: CheckCtx;
beforeAll(async () => {
  projectId = (await aProject(db)).project_id;
});
beforeEach(() => {
  ctx = aCheckCtx(db);
});

function aDefinition(
  steps: readonly StepDefinition[],
  over: Partial<PipelineDefinition> = {},
): PipelineDefinition {
  return {
    pipeline: 'main',
    version: '1',
    steps: [...steps],
    ...over,
  };
}

function text(definition: unknown) {
  return { text: JSON.stringify(definition), contentType: null };
}

function store(pipeline: string, steps: StepDefinition[], over: Partial<PipelineDefinition> = {}) {
  return submitPipeline(ctx, projectId, text(aDefinition(steps, { pipeline, ...over })));
}

async function findingsOf(definition: PipelineDefinition) {
  const { findings } = await validatePipeline(ctx, projectId, { source: text(definition), strict: false });
  return findings.filter(({ code }) => code !== 'capability_unknown');
}

function run(pipeline: string, input: JsonObject = {}): StepDefinition {
  return { id: 'a', pipeline, input };
}

/** A registered instance with a spec. */
async function register(
  name: string,
  schemas: { input?: JsonObject; output?: JsonObject; version?: string },
) {
  const { version = '1.0.0', input = {}, output = {} } = schemas;
  const digest = `digest of ${name} ${JSON.stringify(schemas)}`;
  const spec = {
    name,
    version,
    description: '',
    input,
    output,
    cost_model: { type: 'free', rate_usd: 0 } as const,
  };
  await insertSpec(db, { name, version, digest, spec });
  await anInstance(db, { name, version, spec_digest: digest });
  return digest;
}

function closed(properties: JsonObject): JsonObject {
  return {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

describe('pipelines that run pipelines', () => {
  const leaf: StepDefinition = { id: 'a', capability: 'concat' };

  beforeAll(async () => {
    ctx = aCheckCtx(db);
    await store('reel', [leaf], {
      job_schema: closed({ clips: { type: 'array', items: { type: 'string' } } }),
      output: { video: '{{ steps.a.output }}', frames: 'n {{ run.id }}' },
    });
    await setAlias(db, { project_id: projectId, pipeline: 'reel', version: '1' }, 'stable');
  });

  test.each([
    ['reel@1', null],
    ['reel@stable', null],
    ['reel@latest', null],
    ['reel@2', /"reel@1"/],
    ['rele@1', /"reel"/],
  ])('%s is looked up by version or alias', async (reference, suggestion) => {
    const findings = await findingsOf(aDefinition([run(reference, { clips: [] })]));
    expect(findings).toEqual(
      suggestion === null
        ? []
        : [
            expect.objectContaining({
              code: 'pipeline_unknown',
              pointer: '/steps/0/pipeline',
              suggestion: expect.stringMatching(suggestion),
            }),
          ],
    );
  });

  test('the input is the job of the other pipeline, its output has the keys that are written there', async () => {
    const findings = await findingsOf(
      aDefinition([
        run('reel@1', { clips: [1], quality: 'low' }),
        {
          id: 'b',
          capability: 'sink',
          input: { x: '{{ steps.a.output.video.path }}', y: '{{ steps.a.output.vidoe }}' },
        },
      ]),
    );
    expect(findings.map(({ code, pointer }) => [code, pointer])).toEqual([
      ['type_mismatch', '/steps/0/input/clips/0'],
      ['property_unknown', '/steps/0/input/quality'],
      ['path_unknown', '/steps/1/input/y'],
    ]);
  });

  test('a pipeline does not lead back to itself, by whatever name', async () => {
    await store('inner', [run('reel@1', { clips: [] })]);
    await store('outer', [run('inner@latest')]);
    const back = (reference: string, pipeline: string, version = '9') =>
      findingsOf(aDefinition([run(reference)], { pipeline, version }));
    expect(await back('main@9', 'main')).toMatchObject([
      { code: 'pipeline_cycle', message: expect.stringContaining('main@9 -> main@9') },
    ]);
    expect(await back('main@latest', 'main')).toMatchObject([{ code: 'pipeline_cycle' }]);
    expect(await back('outer@1', 'inner')).toMatchObject([
      { code: 'pipeline_cycle', message: expect.stringContaining('inner@9 -> outer@1 -> inner@9') },
    ]);
    expect(await back('outer@1', 'main')).toEqual([]);
  });

  test('runs start runs five deep', async () => {
    await store('deep', [leaf], { version: '0' });
    for (let level = 1; level <= 5; level++) {
      await store('deep', [run(`deep@${level - 1}`)], { version: String(level) });
    }
    expect(await findingsOf(aDefinition([run('deep@4')]))).toEqual([]);
    expect(await findingsOf(aDefinition([run('deep@5')]))).toMatchObject([
      { code: 'pipeline_depth', message: expect.stringContaining('at most 5 deep') },
    ]);
  });
});

describe('before a run', () => {
  const check = (definition: PipelineDefinition) =>
    checkForRun(ctx, projectId, { definition, digest: digestDefinition(definition) });

  test('a capability that is not offered is an error, unless the step waits for it', async () => {
    await register('scale', {});
    const step = { id: 'a', capability: 'scael' };
    await expect(check(aDefinition([step]))).rejects.toMatchObject({
      code: 'definition_invalid',
      errors: [
        expect.objectContaining({
          code: 'capability_unknown',
          pointer: '/steps/0/capability',
          suggestion: 'did you mean "scale"?',
        }),
      ],
    });
    await expect(check(aDefinition([{ ...step, wait_for_capability: '0s' }]))).rejects.toThrow();
    expect(await check(aDefinition([{ ...step, wait_for_capability: '10s' }]))).toEqual({
      findings: [],
      specs: {},
    });
  });

  test('the checked specs are returned, those of the versions that the steps want', async () => {
    await register('cut', { version: '1.0.0', output: closed({ old: { type: 'string' } }) });
    const digest = await register('cut', { version: '2.0.0', output: closed({ path: { type: 'string' } }) });
    const definition = (field: string) =>
      aDefinition([
        { id: 'a', capability: 'cut', capability_version: '^2.0.0' },
        {
          id: 'b',
          capability: 'cut',
          capability_version: '^2.0.0',
          input: { x: `{{ steps.a.output.${field} }}` },
        },
      ]);
    expect(await check(definition('path'))).toEqual({ findings: [], specs: { cut: digest } });
    await expect(check(definition('old'))).rejects.toThrow('steps.a.output.old never exists');
  });

  test('another spec is another check, and the same things are checked once', async () => {
    await register('mix', { output: closed({ path: { type: 'string' } }) });
    const definition = aDefinition([
      { id: 'a', capability: 'mix' },
      { id: 'b', capability: 'mix', input: { x: '{{ steps.a.output.path }}' } },
    ]);
    const first = await check(definition);
    expect((await check(definition)).findings).toBe(first.findings);
    await db('instance').where({ name: 'mix' }).delete();
    await register('mix', { output: closed({ file: { type: 'string' } }) });
    await expect(check(definition)).rejects.toThrow('steps.a.output.path never exists');
  });
});

test('literals are judged by the whole schema, with any value in the holes', async () => {
  await register('fade', {
    input: {
      type: 'object',
      properties: {
        seconds: { type: 'number', maximum: 9 },
        curve: { enum: ['linear', 'smooth'] },
        at: {
          anyOf: [
            { type: 'object', properties: { start: { type: 'number', minimum: 0 } }, required: ['start'] },
            { const: 'end' },
          ],
        },
      },
      required: ['seconds'],
    },
  });
  const findings = await findingsOf(
    aDefinition([
      {
        id: 'a',
        capability: 'fade',
        input: { seconds: 10, curve: 'smoth', at: { start: '{{ job.x }}', n: 1 } },
      },
      { id: 'b', capability: 'fade', input: { seconds: '{{ job.x }}', at: { start: -1 } } },
    ]),
  );
  expect(findings.map(({ code, pointer, suggestion }) => [code, pointer, suggestion])).toEqual([
    ['input_invalid', '/steps/0/input/seconds', undefined],
    ['type_mismatch', '/steps/0/input/curve', 'did you mean "smooth"?'],
    ['input_invalid', '/steps/1/input/at', undefined],
  ]);
});

test('a pattern of a definition that cannot run in linear time is noted', async () => {
  const review = { title: 'ok?', schema: { patternProperties: { '(a)\\1': {} } } };
  const job_schema = { properties: { name: { type: 'string', pattern: '^(?!\\.)' } } };
  const found = await findingsOf(aDefinition([{ id: 'a', review }], { job_schema }));
  expect(found.map(({ severity, code, pointer }) => [severity, code, pointer])).toEqual([
    ['note', 'pattern_not_enforced', '/steps/0/review/schema/patternProperties/(a)\\1'],
    ['note', 'pattern_not_enforced', '/job_schema/properties/name/pattern'],
  ]);
});

test('the schemas of a definition are vetted', async () => {
  const review = { title: 'ok?', schema: { type: 'nonsense' } };
  const findings = await findingsOf(
    aDefinition([{ id: 'a', review }], {
      job_schema: { type: 'array', items: { $ref: 'http://elsewhere' } },
    }),
  );
  expect(findings.map(({ code, pointer }) => [code, pointer])).toEqual([
    ['schema_invalid', '/steps/0/review/schema'],
    ['schema_invalid', '/job_schema'],
  ]);
  expect(
    await findingsOf(aDefinition([{ id: 'a', wait: '1s' }], { job_schema: { type: 'array' } })),
  ).toMatchObject([{ code: 'schema_invalid', message: expect.stringContaining('a job is an object') }]);
});
