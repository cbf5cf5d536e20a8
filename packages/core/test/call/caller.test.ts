/** Whose call it is, and which names a key may call. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  type CallingKey,
  coversName,
  describeBeyond,
  isRun,
  mayCallName,
  runOf,
  scopesOf,
} from '../../src/call/caller.ts';

const key: CallingKey = {
  key_id: 'key_1',
  scopes: ['key:key_1'],
  names: ['model.*', 'upscale'],
  token_rates: [],
  onBudget: null,
};

test('a call belongs to a run or to a key, and names the scopes of its payer', () => {
  const run = { run_id: 'run_1' };
  expect([isRun(run), runOf(run), scopesOf(run)]).toEqual([true, 'run_1', undefined]);
  expect([isRun(key), runOf(key), scopesOf(key)]).toEqual([false, null, ['key:key_1']]);
});

describe('a pattern of names', () => {
  it.each([
    ['model.fast', 'model.fast', true],
    ['model.fast', 'model.faster', false],
    ['model.*', 'model.fast', true],
    ['model.*', 'model', false],
    ['model.*', 'a.model.', false],
    ['*', 'anything', true],
    ['*.fast', 'model.fast', false],
  ])('%s covers %s: %s', (pattern, name, isCovered) => {
    expect(coversName(pattern, name)).toBe(isCovered);
  });

  it('covers itself, and with * all that begin with it', () => {
    const name = fc.stringMatching(/^[a-z.]{0,12}$/);
    fc.assert(
      fc.property(name, name, (beginning, rest) => {
        expect(coversName(beginning, beginning + rest)).toBe(rest === '');
        expect(coversName(`${beginning}*`, beginning + rest)).toBe(true);
      }),
    );
  });
});

test('a key may call the names that one of its patterns covers, or all', () => {
  const may = (name: string) => mayCallName(key, name);
  expect([may('model.fast'), may('upscale'), may('publish')]).toEqual([true, true, false]);
  expect(mayCallName({ names: null }, 'publish')).toBe(true);
  expect(mayCallName({ names: [] }, 'publish')).toBe(false);
});

test('a refusal names the scopes of the key', () => {
  expect(describeBeyond(key, 'publish')).toBe(
    'key_1 may not call publish, only by capability:call:model.*, capability:call:upscale',
  );
});
