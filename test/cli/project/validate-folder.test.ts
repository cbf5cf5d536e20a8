import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { createProjectSchema } from '../../../src/api/documents/docs.ts';
import { runCapstan } from '../../../src/cli/program.ts';
import { aShell } from '../support/shell.ts';

/** Validates a folder with these files. There is no server, and no variable. */
async function validate(files: Readonly<Record<string, string>>, ...words: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-folder-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'pipelines'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const { shell, seen } = aShell();
  await runCapstan(['validate', folder, ...words, '--url', 'http://127.0.0.1:9'], shell);
  return { ...seen, folder };
}

const page = await readFile(new URL('../../../docs/operate/project-files.md', import.meta.url), 'utf8');
const sample = /```yaml\n(# yaml-language-server[\s\S]*?)```/.exec(page)?.[1] ?? '';
const pipeline = (steps: string, version = '"1"') =>
  `pipeline: p\nversion: ${version}\nsteps:\n  - ${steps}\n`;

it('accepts the sample of the docs without its variables, as does its JSON Schema', async () => {
  const { stdout, stderr, exitCode } = await validate({ 'project.yaml': sample });
  expect([exitCode, stderr]).toEqual([0, 'to be set in the environment: PUSH_SECRET, CHAT_PATH\n']);
  expect(stdout).toContain('✓ valid');
  const check = addFormats.default(new Ajv2020({ strict: false })).compile(createProjectSchema(undefined));
  check(parse(sample));
  expect(check.errors).toBe(null);
  expect(check({ hooks: { a: { pipeline: 'p', signature: 'github', secret: 'written out' } } })).toBe(false);
});

it.each([
  [
    'schedules:\n  a: { pipeline: p, cron: "0 0 31 2 *" }\n',
    ':2:27 error value_invalid no month 2 has a day 31',
  ],
  ['schedule: {}\n', ':1:1 error key_unknown'],
  ['pipeline_aliases: { p: { latest: "1" } }\n', 'latest is maintained by Capstan'],
  ['webhooks:\n  - { url: "http://a/", events: [run.over] }\n', ':2:34 error value_invalid expected one of'],
  ['hooks:\n  a:\n   pipeline: p\n  b: [\n', 'error yaml_syntax'],
])('names the place of a fault in %j', async (text, expected) => {
  const { stderr, exitCode } = await validate({ 'project.yaml': text });
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining(expected)]);
});

it('does not repeat a secret that is written out', async () => {
  const text = 'hooks:\n  a: { pipeline: p, signature: github, secret: s3cr3t-of-sixteen }\n';
  const { stdout, stderr } = await validate({ 'project.yaml': text });
  expect(stderr).toContain('a secret is not written into the file');
  expect(stdout + stderr).not.toContain('s3cr3t');
});

it('checks pipelines against one another: cycles, jobs and versions that two files have', async () => {
  const cycle = await validate({ 'pipelines/p.yaml': pipeline('{ id: a, pipeline: p@latest }') });
  expect(cycle.stderr).toContain('p.yaml:4:');
  expect(cycle.stderr).toContain('pipeline_cycle');
  const twice = {
    'pipelines/a.yaml': pipeline('{ id: a, wait: 1s }'),
    'pipelines/b.yaml': pipeline('{ id: a, wait: 1s }'),
  };
  expect((await validate(twice)).stderr).toMatch(/p@1 is also in .*a\.yaml/);
  const wrong = await validate({ 'pipelines/p.yaml': pipeline('{ id: a, wait: soon }') });
  expect([wrong.exitCode, wrong.stderr]).toEqual([1, expect.stringContaining('p.yaml:4:20')]);
});

it('checks a file without a server by --offline', async () => {
  const { folder } = await validate({ 'pipelines/p.yaml': pipeline('{ id: a, capability: model.fast }') });
  const { shell, seen } = aShell();
  await runCapstan(['validate', join(folder, 'pipelines/p.yaml'), '--offline'], shell);
  expect([seen.exitCode, seen.stdout]).toEqual([0, expect.stringContaining('✓ valid')]);
});
