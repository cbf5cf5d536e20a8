import { expect, it } from 'vitest';
import { toHeadroom } from '../../src/routing/price-range.ts';

it.each([
  ['no limit leaves any sum', null, null, { headroomUsd: null }],
  ['the project’s own', '2000000000', null, { headroomUsd: 2, hidesHeadroom: false }],
  ['the tighter own', '2000000000', '3000000000', { headroomUsd: 2, hidesHeadroom: false }],
  [
    'its own, where both leave the same',
    '2000000000',
    '2000000000',
    { headroomUsd: 2, hidesHeadroom: false },
  ],
  [
    'the tighter one of all projects, hidden',
    '2000000000',
    '1000000000',
    { headroomUsd: 1, hidesHeadroom: true },
  ],
  ['the only one, of all projects', null, '1000000000', { headroomUsd: 1, hidesHeadroom: true }],
  ['nothing where more was spent than there is', '-1', null, { headroomUsd: 0, hidesHeadroom: false }],
])('counts %s', (_, project_nano, global_nano, headroom) => {
  expect(toHeadroom({ project_nano, global_nano })).toEqual(headroom);
});
