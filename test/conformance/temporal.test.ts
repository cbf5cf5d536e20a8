import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findDifferences } from '../../src/mock-run/check-expectation.ts';
import type { LocalResult } from '../../src/mock-run/run-locally.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { type ConformanceCase, isRefusal } from './case.ts';
import { allCases } from './cases/all-cases.ts';
import { playCase, seeRefusal } from './temporal-case.ts';

let capstan: Capstan;

beforeAll(async () => {
  // A cancel is heard with the next sign of life.
  capstan = await startCapstan({ HEARTBEAT_INTERVAL_MS: '500' });
});
afterAll(() => capstan?.stop());

async function check(one: ConformanceCase, suffix: string): Promise<void> {
  const { expected } = one;
  if (isRefusal(expected)) {
    expect(await seeRefusal(capstan, one)).toContainEqual(expected);
    return;
  }
  const seen = await playCase(capstan, one, suffix);
  expect(findDifferences(expected, seen as LocalResult)).toEqual([]);
}

describe('on Temporal', { concurrent: true }, () => {
  it.each(allCases.map((one, at) => [`${one.key}: ${one.name}`, one, `c${at}`] as const))(
    '%s',
    (_, one, suffix) => check(one, suffix),
    120_000,
  );
});
