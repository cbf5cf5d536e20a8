import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import type { LocalResult } from '../../src/mock-run/run-locally.ts';
import { findDifferences } from '../../src/mock-run/run-locally.ts';
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
  expect(findDifferences(expected, seen as LocalResult)).toEqual([]);
}

/** The first case of each key, and all refusals, which start no run; the long form has all cases, as local.test.ts. */
const cases = allCases.filter(
  (one, at) =>
    isLong ||
    isRefusal(one.expected) ||
    allCases.findIndex((other) => !isRefusal(other.expected) && other.key === one.key) === at,
);

describe('on Temporal', { concurrent: true }, () => {
  it.each(cases.map((one, at) => [`${one.key}: ${one.name}`, one, `c${at}`] as const))(
    '%s',
    (_, one, suffix) => check(one, suffix),
    120_000,
  );
});
