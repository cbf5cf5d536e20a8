import type {
  PipelineSubmitted,
  PipelineSummary,
  PipelineVersion,
  Validation,
} from '@capstan/core/contracts/pipeline-answers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

interface Page<Item> {
  readonly items: Item[];
  readonly next_cursor: string | null;
}

function definition(over: object = {}) {
  return {
    pipeline: 'video',
    version: '1',
    description: 'joins clips',
    steps: [
      { id: 'join', capability: 'concat', input: { clips: '{{ job.clips }}' } },
      { id: 'thumb', capability: 'thumbnail', input: { video: '{{ steps.join.output.output_path }}' } },
    ],
    ...over,
  };
}

const yaml = { 'content-type': 'application/yaml' };

describe('a pipeline', () => {
  test('is stored under its name and version, and read back as it was sent', async () => {
    const body = definition();
    const [status, answer] = await readJson<PipelineSubmitted>(api.call('/v1/pipelines', { body }));
    expect(status).toBe(201);
    expect(answer).toEqual({
      pipeline: 'video',
      version: '1',
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      warnings: [
        expect.objectContaining({ code: 'capability_unknown', pointer: '/steps/0/capability' }),
        expect.objectContaining({ code: 'capability_unknown', pointer: '/steps/1/capability' }),
      ],
    });
    const [, stored] = await readJson<PipelineVersion>(api.call('/v1/pipelines/video'));
    expect(stored).toMatchObject({
      pipeline: 'video',
      version: '1',
      digest: answer.digest,
      definition: body,
    });
  });

  test('with the same content is the same version, whatever its language and order of keys', async () => {
    const { steps, ...head } = definition({ version: 'same' });
    const [first, { digest }] = await readJson<PipelineSubmitted>(
      api.call('/v1/pipelines', { body: { ...head, steps } }),
    );
    const [second, again] = await readJson<PipelineSubmitted>(
      api.call('/v1/pipelines', { body: { steps, ...head } }),
    );
    const text = `steps: ${JSON.stringify(steps)}\nversion: same\npipeline: video\ndescription: joins clips\n`;
    const [third, asYaml] = await readJson<PipelineSubmitted>(
      api.call('/v1/pipelines', { body: text, headers: yaml }),
    );
    expect([first, second, third]).toEqual([201, 200, 200]);
    expect([again.digest, asYaml.digest]).toEqual([digest, digest]);
  });

  test('with another content under a known version is refused with the differences', async () => {
    await api.call('/v1/pipelines', { body: definition({ version: 'fixed' }) });
    const [step, ...rest] = definition().steps;
    const body = definition({
      version: 'fixed',
      description: undefined,
      steps: [{ ...step, capability: 'join' }, ...rest],
    });
    const [status, problem] = await readJson(api.call('/v1/pipelines', { body }));
    expect(status).toBe(409);
    expect(problem).toMatchObject({
      code: 'version_conflict',
      errors: [
        { pointer: '/description', message: 'stored is "joins clips", submitted is nothing' },
        { pointer: '/steps/0/capability', message: 'stored is "concat", submitted is "join"' },
      ],
    });
    const [, stored] = await readJson<PipelineVersion>(api.call('/v1/pipelines/video/versions/fixed'));
    expect(stored.definition).toEqual(definition({ version: 'fixed' }));
  });

  test('submitted 8 times at once in two contents has one of them', async () => {
    const send = (at: number) =>
      api.call('/v1/pipelines', { body: definition({ pipeline: 'race', description: `number ${at % 2}` }) });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => send(at)));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(4);
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  });

  test('with mistakes is refused with all of them, with their places in the YAML', async () => {
    const body = [
      'pipeline: broken',
      'version: 1',
      'steps:',
      '  - id: a',
      '    capability: concat',
      '    depends_on: [b]',
      '  - id: c',
      '    capabilty: concat',
      '',
    ].join('\n');
    const [status, problem] = await readJson(api.call('/v1/pipelines', { body, headers: yaml }));
    expect([status, problem.code]).toEqual([422, 'definition_invalid']);
    expect(problem.errors).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ pointer: '/version', line: 2, column: 10 }),
        expect.objectContaining({ pointer: '/steps/0/depends_on/0', line: 6 }),
        expect.objectContaining({
          pointer: '/steps/1/capabilty',
          line: 8,
          suggestion: expect.stringContaining('capability'),
        }),
      ]),
    );
    expect((await api.call('/v1/pipelines/broken')).status).toBe(404);
  });

  test('is listed once, with its latest version, page by page', async () => {
    const other = await api.createProject('pages');
    const headers = { authorization: `Bearer ${other.apiKey}` };
    for (const name of ['c', 'a', 'b']) {
      for (const version of ['1', '2'])
        await api.call('/v1/pipelines', { headers, body: definition({ pipeline: name, version }) });
    }
    const [, first] = await readJson<Page<PipelineSummary>>(api.call('/v1/pipelines?limit=2', { headers }));
    const [, second] = await readJson<Page<PipelineSummary>>(
      api.call(`/v1/pipelines?limit=2&cursor=${first.next_cursor}`, { headers }),
    );
    const seen = [...first.items, ...second.items].map((item) => [
      item.pipeline,
      item.latest_version,
      item.steps,
    ]);
    expect(seen).toEqual([
      ['a', '2', 2],
      ['b', '2', 2],
      ['c', '2', 2],
    ]);
    expect(second.next_cursor).toBe(null);
    const [status, problem] = await readJson(api.call('/v1/pipelines?cursor=made-up!', { headers }));
    expect([status, problem.code]).toEqual([422, 'request_invalid']);
  });

  test('lists its versions newest first, page by page', async () => {
    const versions = ['1', '10', '2', 'a/b'];
    for (const version of versions)
      await api.call('/v1/pipelines', { body: definition({ pipeline: 'versions', version }) });
    const seen: string[] = [];
    let cursor = '';
    do {
      const [, page] = await readJson<Page<{ version: string }>>(
        api.call(`/v1/pipelines/versions/versions?limit=3${cursor}`),
      );
      seen.push(...page.items.map(({ version }) => version));
      cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
    } while (cursor !== '');
    expect(seen).toEqual(versions.toReversed());
    expect((await api.call('/v1/pipelines/versions/versions/a%2Fb')).status).toBe(200);
  });
});

describe('validation', () => {
  test('answers findings and the graph, and stores nothing', async () => {
    const body = definition({ pipeline: 'only-checked' });
    const [status, answer] = await readJson<Validation>(api.call('/v1/pipelines/validate', { body }));
    expect(status).toBe(200);
    expect(answer).toMatchObject({
      valid: true,
      graph: {
        steps: [
          { id: 'join', capability: 'concat' },
          { id: 'thumb', capability: 'thumbnail' },
        ],
        edges: [{ from: 'join', to: 'thumb' }],
      },
    });
    expect((await api.call('/v1/pipelines/only-checked')).status).toBe(404);
  });

  test('makes an unregistered capability an error when it is strict', async () => {
    const [, answer] = await readJson<Validation>(
      api.call('/v1/pipelines/validate?strict=true', { body: definition() }),
    );
    expect(answer).toMatchObject({ valid: false, graph: null });
    expect(answer.findings[0]).toMatchObject({ severity: 'error', code: 'capability_unknown' });
  });

  test.each(['application/json', 'text/yaml'])(
    'answers text that cannot be read as a finding: %s',
    async (type) => {
      const headers = { 'content-type': type };
      const [status, answer] = await readJson<Validation>(
        api.call('/v1/pipelines/validate', { body: '{"pipeline": ', headers }),
      );
      expect([status, answer.valid]).toEqual([200, false]);
      expect(answer.findings[0]).toMatchObject({ severity: 'error', line: 1, column: expect.any(Number) });
    },
  );
});
