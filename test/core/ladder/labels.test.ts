import { expect, it } from 'vitest';
import { labelOf, levelOfModel, modelOf } from '../../../src/core/ladder/levels.ts';

it.each([
  [0, 'static template', null],
  [1, 'fast model', 'model.fast'],
  [2, 'capable model', 'model.capable'],
  [3, 'reasoning model', 'model.reasoning'],
  [4, 'top-tier model', 'model.top'],
  [5, 'human', null],
])('level %d is the %s, whose capability is %s', (level, label, capability) => {
  expect([labelOf(level), modelOf(level)]).toEqual([label, capability]);
  if (capability !== null) expect(levelOfModel(capability)).toBe(level);
});

it('a capability that is no model has no level', () => {
  expect(levelOfModel('model.unknown')).toBeNull();
});
