import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DefaultLogger } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { loadWorkflowBundle } from '../../src/processes/bundle-workflows.ts';

const logger = new DefaultLogger('ERROR');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-bundle-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('a named bundle is used unchanged', async () => {
  const file = inject('workflowBundle');
  const code = await readFile(file, 'utf8');
  expect(await loadWorkflowBundle(file, logger)).toEqual({ code, file });
});

test('a file that is missing is refused, naming the variable and the file', async () => {
  const file = join(folder, 'missing.js');
  await expect(loadWorkflowBundle(file, logger)).rejects.toThrow(
    `configuration: WORKFLOW_BUNDLE: "${file}" cannot be read: ENOENT`,
  );
});

test.each([
  ['empty', ''],
  ['other code', 'export const runPipeline = () => undefined;\n'],
  ['the first half of a bundle', 'var __TEMPORAL__;\n/******/ (() => { // webpackBootstrap\n'],
])('%s is refused, with what is allowed', async (name, text) => {
  const file = join(folder, name);
  await writeFile(file, text);
  await expect(loadWorkflowBundle(file, logger)).rejects.toThrow(
    `configuration: WORKFLOW_BUNDLE: "${file}" is no workflow bundle; allowed is what npm run build writes to dist/src/workflow-bundle.js`,
  );
});
