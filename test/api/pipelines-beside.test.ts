import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import type { Plan } from '@capstan/core/contracts/plan';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCapstan } from '../../src/cli/program.ts';
import { aShell } from '../cli/support/shell.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const outer = (name: string, reference: string) => `pipeline: ${name}
version: "1"
steps:
  - { id: title, pipeline: ${reference}, input: { text: "{{ job.text }}" } }
output: "{{ steps.title.output.said }}"
`;
const titling = (name: string, wait = '2s') => `pipeline: ${name}
version: "1.0"
job_schema: { type: object, required: [text], properties: { text: { type: string } } }
steps:
  - { id: rest, wait: ${wait} }
output: { said: "{{ job.text }}" }
`;

async function inFolder(files: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-beside-'));
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const capstan = async (command: string, name: string, ...words: string[]) => {
    const { shell, seen } = aShell();
    const where = ['--url', api.url, '--key', api.apiKey];
    await runCapstan([command, join(folder, name), ...words, ...where], shell);
    return seen;
  };
  return { capstan, write, remove: () => rm(folder, { recursive: true }) };
}

const isStored = async (name: string) =>
  (await api.call(`/v1/pipelines/${name}/versions/1.0`)).status === 200;
const countRuns = async () => Number((await api.db('run').count())[0]?.count);

describe('a pipeline that lies beside the file that names it', () => {
  test('is known to validate and plan, which store nothing, and what it takes and answers is checked', async () => {
    const { capstan, write, remove } = await inFolder({
      'reel.yaml': outer('reel', 'titling@1.0'),
      'title.yaml': titling('titling'),
      'job.json': '{"text":"hello"}',
      'notes.yaml': 'no: pipeline',
    });
    const valid = await capstan('validate', 'reel.yaml');
    expect([valid.exitCode, valid.stdout]).toEqual([0, expect.stringContaining('✓ valid')]);
    const plan = await capstan('plan', 'reel.yaml', '--job', '{"text":"hello"}', '--json');
    expect(JSON.parse(plan.stdout)).toMatchObject({
      findings: [],
      critical_path: { steps: ['title'], duration_ms: 2_000 },
    } satisfies Partial<Plan>);
    await write('reel.yaml', outer('reel', 'titling@1.0').replace('output.said', 'output.sad'));
    const wrong = await capstan('validate', 'reel.yaml');
    expect([wrong.exitCode, wrong.stdout]).toEqual([1, expect.stringContaining('did you mean "said"?')]);
    expect(await isStored('titling')).toBe(false);
    await remove();
  });

  test('is stored when the file is run, the deepest first, once, with a line about it', async () => {
    const { capstan, remove } = await inFolder({
      'film.yaml': outer('film', 'middle@1.0'),
      'a.yaml': outer('middle', 'deepest@1.0')
        .replace('"1"', '"1.0"')
        .replace('output: "', 'output: { said: "')
        .replace('said }}"', 'said }}" }'),
      'b.yaml': titling('deepest'),
      'unnamed.yaml': titling('unnamed'),
    });
    const first = await capstan('run', 'film.yaml', '--job', '{"text":"hello"}');
    expect(first).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^run_/) });
    expect(first.stderr).toMatch(/stored deepest@1\.0 from .*b\.yaml\n.*stored middle@1\.0 from .*a\.yaml\n/);
    const [, stored] = await readJson<PipelineVersion>(api.call('/v1/pipelines/deepest/versions/1.0'));
    expect(stored.source?.text).toBe(titling('deepest'));
    expect(await isStored('unnamed')).toBe(false);
    const again = await capstan('run', 'film.yaml', '--job', '{"text":"hello"}');
    expect([again.exitCode, again.stderr.includes('stored')]).toEqual([0, false]);
    await remove();
  });

  test('is never stored over another content: validate, plan and run refuse the file, and no run starts', async () => {
    const { capstan, write, remove } = await inFolder({
      'clip.yaml': outer('clip', 'changing@1.0'),
      'changing.yaml': titling('changing'),
    });
    await capstan('run', 'clip.yaml', '--job', '{"text":"hello"}');
    await write('changing.yaml', titling('changing', '3s'));
    const before = await countRuns();
    const refused = /version_conflict changing@1\.0 is stored with another content than the one beside/;
    const validated = await capstan('validate', 'clip.yaml');
    expect([validated.exitCode, validated.stdout]).toEqual([1, expect.stringMatching(refused)]);
    for (const command of ['plan', 'run']) {
      const seen = await capstan(command, 'clip.yaml', '--job', '{"text":"hello"}');
      expect([seen.exitCode, seen.stderr]).toEqual([1, expect.stringMatching(refused)]);
    }
    expect(await countRuns()).toBe(before);
    await remove();
  });

  test('counts as the latest only while none of its name is stored', async () => {
    const { capstan, write, remove } = await inFolder({
      'late.yaml': outer('late', 'newest@latest'),
      'newest.yaml': titling('newest'),
    });
    expect((await capstan('validate', 'late.yaml')).exitCode).toBe(0);
    expect((await capstan('run', 'late.yaml', '--job', '{"text":"x"}')).stderr).toContain(
      'stored newest@1.0',
    );
    await write('newest.yaml', titling('newest', '3s').replace('"1.0"', '"2.0"'));
    const seen = await capstan('run', 'late.yaml', '--job', '{"text":"x"}');
    expect([seen.exitCode, seen.stderr.includes('stored')]).toEqual([0, false]);
    await remove();
  });

  test('is stored with its own errors shown when it cannot be, and no run starts', async () => {
    const { capstan, remove } = await inFolder({
      'poor.yaml': outer('poor', 'broken@1.0'),
      'broken.yaml': titling('broken').replace('type: object,', "type: object, pattern: '(', "),
    });
    const before = await countRuns();
    const seen = await capstan('run', 'poor.yaml', '--job', '{"text":"x"}');
    expect([seen.exitCode, await countRuns()]).toEqual([1, before]);
    expect(seen.stderr).toMatch(/broken@1\.0 has one error: the schema cannot be used/);
    await remove();
  });
});
