import { expect, it } from 'vitest';
import { capstan } from '../support/capstan.ts';

const publisher = { name: 'concat', projects: ['prj_1', 'prj_2'], updated_at: '2026-01-09T00:00:00.000Z' };

it('lists who may register under which name', async () => {
  const { stdout, asked } = await capstan(['publishers'], { items: [publisher], next_cursor: null });
  expect([asked, stdout]).toEqual([
    ['GET /v1/publishers?limit=200'],
    'NAME    PROJECTS\nconcat  prj_1, prj_2\n',
  ]);
  const nobody = await capstan(['publishers', 'ls', '--json'], { items: [], next_cursor: null });
  expect(JSON.parse(nobody.stdout)).toEqual({ items: [], next_cursor: null });
});

it('gives a name to projects', async () => {
  const { stdout, asked } = await capstan(['publishers', 'set', 'concat', 'prj_1', 'prj_2'], publisher);
  expect(asked).toEqual(['PUT /v1/publishers/concat {"projects":["prj_1","prj_2"]}']);
  expect(stdout).toContain('concat  prj_1, prj_2');
});

it('refuses a name without projects, without asking', async () => {
  const { asked, exitCode } = await capstan(['publishers', 'set', 'concat'], {});
  expect([asked, exitCode]).toEqual([[], 1]);
});
