/**
 * What every call makes has one hidden class. V8 gives each object one of its own where a property is added to a copy
 * (`{ ...copied, added }`), or an accessor is in a literal (bench/README.md, "Memory that a call keeps").
 */
import { setFlagsFromString } from 'node:v8';
import { expect, it } from 'vitest';
import { ClaimSearch } from '../../src/call/claim-search.ts';
import { createFilter } from '../../src/routing/filter.ts';
import { anInstance, aRequest, now } from '../routing/a-snapshot.ts';

setFlagsFromString('--allow-natives-syntax');
const isAlike = new Function('one', 'other', 'return %HaveSameMap(one, other)') as (
  one: object,
  other: object,
) => boolean;
setFlagsFromString('--no-allow-natives-syntax');

const route = aRequest();
const fleet = {
  of: () => ({ instances: [anInstance('one'), anInstance('other')], priorMs: 10_000 }),
  nowMs: () => now,
};

function newSearch(): ClaimSearch {
  return new ClaimSearch({ seed: 1, route, tried: [] });
}

/** The last two of many: the first copies at a place are made in another way. */
function lastTwo(make: () => object): [one: object, other: object] {
  const made = Array.from({ length: 100 }, make);
  return [made[98] as object, made[99] as object];
}

it.each<[string, () => object]>([
  ['a search', newSearch],
  ['the request of a choice', () => newSearch().choose(fleet, { waiting: 0 }).request],
  ['a filter', () => createFilter(route)],
])('%s', (_, make) => {
  expect(isAlike(...lastTwo(make))).toBe(true);
});

it('distinguishes objects with classes of their own', () => {
  const copied = { a: 1 };
  expect(isAlike(...lastTwo(() => ({ ...copied, b: 2 })))).toBe(false);
});
