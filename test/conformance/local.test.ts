import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import { factsOfMocks } from '@capstan/core/mock-run/prepare-run';
import { findDifferences, runLocally } from '@capstan/core/mock-run/run-locally';
import { describe, expect, it, test } from 'vitest';
import { type ConformanceCase, completeDefinition, isRefusal } from './case.ts';
import { allCases } from './cases/all-cases.ts';
import { listKeys } from './keys.ts';

function read(one: ConformanceCase) {
  return readDefinition(
    { text: JSON.stringify(completeDefinition(one)), contentType: 'application/json' },
    factsOfMocks(one.script ?? {}, one.script?.pipelines ?? []),
  );
}

function run(definition: PipelineDefinition, { job = {}, script = {} }: ConformanceCase) {
  const { pipelines = [], ...mocks } = script;
  return runLocally(definition, job, mocks, { pipelines });
}

test.each(['happy', 'unhappy'])('every key of the contract has a %s case', (path) => {
  const covered = new Set(allCases.flatMap((one) => (one.path === path ? [one.key] : [])));
  expect(listKeys().filter((key) => !covered.has(key))).toEqual([]);
});

test('every case is of a key of the contract, and no two have one name', () => {
  const keys = new Set(listKeys());
  expect(allCases.filter(({ key }) => !keys.has(key))).toEqual([]);
  expect(new Set(allCases.map(({ key, name }) => `${key} ${name}`)).size).toBe(allCases.length);
});

describe('in this process', () => {
  it.each(allCases.map((one) => [`${one.key}: ${one.name}`, one] as const))('%s', async (_, one) => {
    const { expected } = one;
    const { definition, findings } = read(one);
    const errors = findings.filter(({ severity }) => severity === 'error');
    if (isRefusal(expected) && expected.pointer !== undefined) {
      expect(errors.map(({ code, pointer }) => ({ refused: code, pointer }))).toContainEqual(expected);
      return;
    }
    expect(errors).toEqual([]);
    const result = await run(definition as PipelineDefinition, one);
    const wanted = isRefusal(expected) ? { outcome: 'refused' as const, error: expected.refused } : expected;
    expect(findDifferences(wanted, result)).toEqual([]);
  });
});
