import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runCapstan } from '../../src/cli/program.ts';
import { aShell } from '../cli/support/shell.ts';
import { listCodeBlocks } from './documents.ts';

test('the pipeline that polls asks as often as its page describes', async () => {
  const [pipeline, mocks, ...others] = listCodeBlocks('docs/poll-a-slow-job.md');
  expect([pipeline?.language, mocks?.language, others]).toEqual(['yaml', 'yaml', []]);
  const folder = await mkdtemp(join(tmpdir(), 'capstan-polling-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'film.yaml'), pipeline?.text ?? '');
  await writeFile(join(folder, 'mocks.yaml'), mocks?.text ?? '');
  const { shell, seen } = aShell();
  await runCapstan(['run', join(folder, 'film.yaml'), '--mock', join(folder, 'mocks.yaml')], shell);
  expect(seen.stdout).toContain('as expected');
  expect(seen.exitCode).toBe(0);
});
