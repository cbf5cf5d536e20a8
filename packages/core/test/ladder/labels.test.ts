import { expect, it } from 'vitest';
import { findLevelFaults, levelOfModel, modelOf, readLevelModels } from '../../src/ladder/level-models.ts';
import { labelOf } from '../../src/ladder/levels.ts';

const usual = readLevelModels('');
const own = readLevelModels('fast=model.local, top = model.claude');

it.each([
  [0, 'static template', null],
  [1, 'fast model', 'model.fast'],
  [2, 'capable model', 'model.capable'],
  [3, 'reasoning model', 'model.reasoning'],
  [4, 'top-tier model', 'model.top'],
  [5, 'human', null],
])('level %d is the %s, whose capability is %s', (level, label, capability) => {
  expect([labelOf(level), modelOf(usual, level)]).toEqual([label, capability]);
  if (capability !== null) expect(levelOfModel(usual, capability)).toBe(level);
});

it('a capability that is no model has no level', () => {
  expect(levelOfModel(usual, 'model.unknown')).toBeNull();
});

it('a level has the model of the setting, and its usual one otherwise', () => {
  expect([1, 2, 3, 4].map((level) => modelOf(own, level))).toEqual([
    'model.local',
    'model.capable',
    'model.reasoning',
    'model.claude',
  ]);
});

it('a call of a former or a usual model keeps its level, and the setting counts first', () => {
  expect(['model.claude', 'model.top', 'model.fast'].map((model) => levelOfModel(own, model))).toEqual([
    4, 4, 1,
  ]);
  const swapped = readLevelModels('fast=model.top,top=model.fast');
  expect(['model.top', 'model.fast'].map((model) => levelOfModel(swapped, model))).toEqual([1, 4]);
});

it.each([
  ['slow=model.a', /"slow=model\.a" names no level; allowed are fast=model\.NAME, capable=/],
  ['fast', /"fast" names no model; allowed is fast=model\.NAME/],
  ['fast=gpt', /"fast=gpt" names no model/],
  ['fast=model.a=b', /names no model/],
  ['fast=model.a, slow = model.b', /^"slow=model\.b" names no level/],
  ['fast=model.a,', /"" names no level/],
  ['fast=model.a,fast=model.b', /names a level twice/],
  ['fast=model.a,capable=model.a,top=model.a', /levels fast and capable;.*levels fast and top;/],
  ['fast=model.top', /model\.top is the model of the levels fast and top; allowed is another model/],
])('the setting %s is refused with what was seen and allowed', (text, message) => {
  expect(findLevelFaults(text).join()).toMatch(message);
});

it.each([
  '',
  ' ',
  'fast=model.local',
  ' fast = model.local , top = model.a ',
  'fast=model.top,top=model.fast',
])('the setting "%s" is valid', (text) => {
  expect(findLevelFaults(text)).toEqual([]);
});
