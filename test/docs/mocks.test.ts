import { readdirSync } from 'node:fs';
import { readMocks } from '@capstan/core/mock-run/read-mocks';
import { expect, test } from 'vitest';
import { runCapstan } from '../../src/cli/program.ts';
import { aShell } from '../cli/support/shell.ts';
import { listCodeBlocks, root } from './documents.ts';

const examples = readdirSync(`${root}examples`, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('/mocks.yaml'),
);

test('there are examples with mocks', () => {
  expect(examples.length).toBeGreaterThanOrEqual(2);
});

test.each(examples)('examples/%s comes out as it expects', async (name) => {
  const { shell, seen } = aShell();
  const mocks = `${root}examples/${name}`;
  await runCapstan(['run', mocks.replace(/mocks\.yaml$/, 'pipeline.yaml'), '--mock', mocks], shell);
  expect(seen.stdout).toContain('as expected');
  expect(seen.exitCode).toBe(0);
});

test('the mocks file of the guide is sound', () => {
  const guides = listCodeBlocks('docs/test-a-pipeline.md').filter(({ language }) => language === 'yaml');
  expect(guides).toHaveLength(1);
  for (const { text } of guides) expect(readMocks(text, 'application/yaml').findings).toEqual([]);
});
