import type { LocalResult } from '@capstan/core/mock-run/run-locally';
import { findDifferences } from '@capstan/core/mock-run/run-locally';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { type ConformanceCase, isRefusal } from './case.ts';
import { allCases } from './cases/all-cases.ts';
import { playCase, seeRefusal } from './temporal-case.ts';

let capstan: SharedCapstan;
let db: Db;

beforeAll(async () => {
  capstan = await shareCapstan();
  db = connectDatabase(capstan.databaseUrl, 4);
});
afterAll(async () => {
  await db?.destroy();
});

async function check(one: ConformanceCase, suffix: string): Promise<void> {
  const { expected } = one;
  if (isRefusal(expected)) {
    expect(await seeRefusal(capstan, one)).toContainEqual(expected);
    return;
  }
  const seen = await playCase({ capstan, db }, one, suffix);
  expect(findDifferences(expected, seen as unknown as LocalResult)).toEqual([]);
}

/**
 * Their outputs are computed by the same functions in both drivers; on Temporal their runs go as those of other keys.
 */
const keysOfNoDriver = new Set([
  ...['pipeline', 'version', 'description', 'labels', 'steps', 'priority', 'job_schema'].map(
    (key) => `pipeline.${key}`,
  ),
  ...['id', 'description', 'capability', 'priority'].map((key) => `step.${key}`),
  ...['start_level', 'max_level', 'max_usd'].map((key) => `escalate.${key}`),
  ...['initial', 'factor', 'max_delay'].map((key) => `retry.${key}`),
  ...['review.title', 'concurrency.limit', 'for_each.items'],
]);

function answersLater({ script = {} }: ConformanceCase): boolean {
  const replies = Object.values(script.capabilities ?? {}).flatMap((capability) => capability.replies ?? []);
  return replies.some(({ later }) => later !== undefined);
}

/**
 * The first case of each other key, the cases with later answers, and all refusals, which start no run; the long form
 * has all cases, as local.test.ts.
 */
const cases = allCases.filter(
  (one, at) =>
    isLong ||
    isRefusal(one.expected) ||
    answersLater(one) ||
    (!keysOfNoDriver.has(one.key) &&
      allCases.findIndex((other) => !isRefusal(other.expected) && other.key === one.key) === at),
);

describe('on Temporal', { concurrent: true }, () => {
  it.each(cases.map((one, at) => [`${one.key}: ${one.name}`, one, `c${at}`] as const))(
    '%s',
    (_, one, suffix) => check(one, suffix),
    120_000,
  );
});
