import { expect, it } from 'vitest';
import { renderDispatch } from '../../../src/cli/render/routing.ts';

it('lists each route once with its dispatch, and counts those beyond the fifth', () => {
  const route = { capability: 'x', how: 'inline', message: 'short' } as const;
  expect(renderDispatch([route, route, { ...route, capability_version: '^1', tags: ['gpu'] }])).toEqual([
    'x inline: short',
    'x ^1 gpu inline: short',
  ]);
  const many = Array.from({ length: 7 }, (_, n) => ({ ...route, capability: `x${n}` }));
  expect(renderDispatch(many).slice(4)).toEqual(['x4 inline: short', '… 2 more']);
});
