/**
 * Graphs of other engines, as the examples write them: what a plan asks for each, before anything is called. Their
 * capabilities have the prices of their mocks; the worst case has all retries. That each comes out as expected is in test/docs/mocks.test.ts.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import type { Mocks } from '@capstan/core/mock-run/mocks';
import { readMocks } from '@capstan/core/mock-run/read-mocks';
import { expect, test } from 'vitest';
import { useDatabase } from '../../support/database.ts';
import { usePlanner } from './a-planner.ts';

const { db } = useDatabase();
const planner = usePlanner(db);
const examples = new URL('../../../examples/', import.meta.url);

function textOf(file: string): string {
  return readFileSync(new URL(file, examples), 'utf8');
}

function definitionOf(file: string): PipelineDefinition {
  const facts = { knownCapabilities: new Set<string>(), strict: false, specsOf: () => [] };
  const { definition } = readDefinition({ text: textOf(file), contentType: 'application/yaml' }, facts);
  if (definition === null) throw new Error(`${file} cannot be read`);
  return definition;
}

function mocksOf(folder: string): Mocks {
  const { mocks } = readMocks(textOf(`${folder}/mocks.yaml`), 'application/yaml');
  if (mocks === null) throw new Error(`the mocks of ${folder} cannot be read`);
  return mocks;
}

test.each([
  ['poll-a-job', [0.05, 0.05, 0.2]],
  ['agent', [0.01, 0.01, 0.32]],
  ['first-confident', [0.001, 0.005, 6]],
  ['translated/gifs', [0, 0.002, 0.014]],
  ['translated/evaluations', [3, 3, 12]],
  ['translated/map-reduce', [0.07, 0.07, 0.28]],
  ['translated/harness', [2, 2, 8]],
  ['translated/image-variants', [0.032, 0.032, 0.128]],
])('the plan of %s has its least, likely and worst price', async (folder, [min, expected, worst]) => {
  const { plan, add, store } = planner.get();
  const { job, capabilities } = mocksOf(folder);
  for (const [name, { cost_model }] of Object.entries(capabilities ?? {})) {
    const { type: cost_type = 'free', rate_usd = 0 } = cost_model ?? {};
    await add(name, { cost_type, rate_usd });
  }
  if (existsSync(new URL(`${folder}/round.yaml`, examples))) {
    const { pipeline, steps, ...rest } = definitionOf(`${folder}/round.yaml`);
    await store(pipeline, steps, rest);
  }
  const { steps, version, ...rest } = definitionOf(`${folder}/pipeline.yaml`);
  const seen = await plan(steps, { ...rest, version, job: job ?? {} });
  expect(seen.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(seen.cost_usd).toEqual({ min, expected, worst });
});
