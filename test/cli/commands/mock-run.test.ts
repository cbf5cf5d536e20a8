import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { aShell } from '../support/shell.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-mocks-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const pipeline = [
  'pipeline: greet',
  'version: "1"',
  'steps:',
  '  - { id: hello, capability: say, input: { to: "{{ job.name }}" } }',
  'output: "{{ steps.hello.output.said }}"',
].join('\n');

async function run(mocks: string, { definition = pipeline, words = [] as string[] } = {}) {
  const [file, mock] = [join(folder, 'pipeline.yaml'), join(folder, 'mocks.yaml')];
  await Promise.all([writeFile(file, definition), writeFile(mock, mocks)]);
  const { shell, seen } = aShell();
  await runCapstan(['run', file, '--mock', mock, ...words], shell);
  return seen;
}

const says = 'capabilities: { say: { replies: [{ output: { said: "hello {{ input.to }}" } }] } }';

describe('capstan run --mock', () => {
  it('shows the steps and the output, and exits as the run ended', async () => {
    const seen = await run(says, { words: ['--job', '{"name": "ada"}'] });
    expect(seen.stdout).toMatch(/✓ succeeded {2}greet@1/);
    expect(seen.stdout).toMatch(/hello +✓ succeeded +1/);
    expect(seen.stdout).toContain('"hello ada"');
    expect(seen.exitCode).toBe(0);
    expect((await run(says, { words: ['--job', '{}'] })).exitCode).toBe(1);
  });

  it('uses mocks.yaml next to the pipeline when no file is named, and reports when none exists', async () => {
    await run(`job: { name: ada }\n${says}`);
    const file = join(folder, 'pipeline.yaml');
    const mocked = async (...words: string[]) => {
      const { shell, seen } = aShell();
      await runCapstan(['run', ...words], shell);
      return seen;
    };
    const seen = await mocked(file, '--mock', '--json');
    expect(JSON.parse(seen.stdout)).toMatchObject({ outcome: 'succeeded', output: 'hello ada' });
    const alone = join(await mkdtemp(join(folder, 'alone-')), 'pipeline.yaml');
    await writeFile(alone, pipeline);
    const missing = await mocked(alone, '--mock');
    expect(missing.exitCode).toBe(1);
    expect(missing.stderr).toContain(`there is no ${join(dirname(alone), 'mocks.yaml')}`);
    expect((await mocked('greet', '--mock')).stderr).toContain('--mock goes with a file; greet is none');
  });

  it.each([
    ['7615917337495251231', '{"list": [{"id": 7615917337495251231}]}', '1:18: /list/0/id'],
    ['1e999', '{"n": 1e999}', '1:7: /n'],
  ])(
    'refuses a job with %s, inline and in files, and explains what to write',
    async (written, job, place) => {
      const advice = `; write it as text: "${written}"`;
      expect((await run(says, { words: ['--job', job] })).stderr).toMatch(
        new RegExp(`--job:${place}: the number`),
      );
      for (const [name, text] of [
        ['job.json', job],
        ['job.yaml', `list:\n- ${job}`],
      ] as const) {
        await writeFile(join(folder, name), text);
        const { stderr, exitCode } = await run(says, { words: ['--job', join(folder, name)] });
        expect([stderr, exitCode]).toEqual([expect.stringContaining(advice), 1]);
      }
    },
  );

  it('refuses mocks and definitions with such a number, with line and column', async () => {
    const mocks = says.replace('said:', 'id: 9007199254740993, said:');
    expect((await run(mocks)).stderr).toMatch(
      /mocks\.yaml:1:\d+[\s\S]*number_inexact|number_inexact[\s\S]*mocks/,
    );
    const definition = pipeline.replace('input: {', 'input: { id: 9007199254740993,');
    expect((await run(says, { definition })).stderr).toContain('write it as text: "9007199254740993"');
  });

  it('passes the text of such a number on as the number', async () => {
    const definition = pipeline.replace('steps.hello.output.said', 'job.id | number');
    const seen = await run(says, {
      definition,
      words: ['--job', '{"name": "a", "id": "7615917337495251231"}', '--json'],
    });
    expect(seen.stdout).toContain('"output": 7615917337495251231');
  });

  it('answers everything as JSON', async () => {
    const { stdout } = await run(`job: { name: ada }\n${says}`, { words: ['--json'] });
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: 'succeeded',
      output: 'hello ada',
      calls: { say: 1 },
    });
  });

  it('is a test: exits 1 with the differences when it comes out otherwise', async () => {
    const expected = 'expect: { outcome: succeeded, output: hello bob, calls: { say: 2 } }';
    const seen = await run(`job: { name: ada }\n${says}\n${expected}`);
    expect(seen.exitCode).toBe(1);
    expect(seen.stdout).toContain('output\n  expected "hello bob"\n  actual   "hello ada"');
    expect(seen.stdout).toContain('calls.say\n  expected 2\n  actual   1');
    expect(seen.stdout).not.toContain('outcome\n  expected');
  });

  it('expects a failure as well', async () => {
    const fails = 'capabilities: { say: { replies: [{ error: { status: 422, message: mute } }] } }';
    const expected = 'expect: { outcome: failed, steps: { hello: { error: review_rejected } } }';
    const reviews = 'reviews: { hello: [{ action: reject }] }';
    const seen = await run(`job: { name: ada }\n${fails}\n${reviews}\n${expected}`);
    expect(seen.exitCode).toBe(0);
    expect(seen.stdout).toContain('✓ as expected');
  });

  it('shows findings before anything runs: an unmocked capability by name, and a type that does not fit', async () => {
    const unmocked = await run('capabilities: { sai: {} }');
    expect(unmocked.exitCode).toBe(1);
    expect(unmocked.stderr).toContain('capability_not_mocked the mocks mock sai, not this capability');
    expect(unmocked.stderr).toContain('did you mean "sai"?');
    expect(unmocked.stdout).toBe('');
    const typed = 'capabilities: { say: { input: { type: object, properties: { to: { type: number } } } } }';
    const definition = pipeline.replace('{{ job.name }}', 'ada');
    expect((await run(typed, { definition })).stderr).toContain('number');
  });

  it('needs no server, and takes none of its options', async () => {
    const seen = await run(says, { words: ['--watch'] });
    expect(seen.exitCode).toBe(1);
    expect(seen.stderr).toContain('--watch needs a server');
  });
});
