import type { CacheEntry } from '@capstan/core/contracts/cache';
import { expect, it } from 'vitest';
import { capstan } from '../support/capstan.ts';

const entry: CacheEntry = {
  key: 'a'.repeat(64),
  capability: 'thumbnail',
  pipeline: 'covers',
  run_id: 'run_1',
  step_id: 'cover',
  item: 3,
  cost_usd: 0.25,
  files: 1,
  stored_at: '2026-01-09T00:00:00.000Z',
  expires_at: '2026-01-16T00:00:00.000Z',
};

it('lists what is kept', async () => {
  const page = { items: [entry], next_cursor: null };
  const { stdout, asked } = await capstan(['cache', 'ls', '--capability', 'thumbnail'], page);
  expect(asked).toEqual(['GET /v1/cache?capability=thumbnail&limit=20']);
  expect(stdout.split('\n')[1]).toContain('thumbnail   run_1  cover[3]  $0.25      1  2026-01-09');
});

it('removes the named entries', async () => {
  const { stderr, asked } = await capstan(['cache', 'rm', '--run', 'run_1'], { removed: 2 });
  expect([asked, stderr]).toEqual([['DELETE /v1/cache?run_id=run_1'], '2 results are kept no longer\n']);
  expect((await capstan(['cache', 'rm', entry.key], { removed: 1 })).asked).toEqual([
    `DELETE /v1/cache?key=${entry.key}`,
  ]);
  expect((await capstan(['cache', 'rm', '--all'], { removed: 0 })).asked).toEqual(['DELETE /v1/cache']);
});

it('removes everything only with an explicit flag', async () => {
  const { asked, exitCode } = await capstan(['cache', 'rm'], {});
  expect([asked, exitCode]).toEqual([[], 1]);
});
