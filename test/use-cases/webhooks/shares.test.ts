import { expect, it } from 'vitest';
import { createShares } from '../../../src/use-cases/webhooks/delivery.ts';

it('gives a silent receiver one place until it answers', () => {
  const { note, room } = createShares();
  note('wh_1', false);
  expect(room().left.webhooks).toEqual(new Map([['wh_1', 1]]));
  note('wh_1', true);
  expect(room().left.webhooks).toEqual(new Map());
});

it('forgets the oldest silent receivers, of which some may be deleted', () => {
  const { note, room } = createShares();
  for (let n = 0; n < 1_500; n++) note(`wh_${n}`, false);
  const kept = [...room().left.webhooks.keys()];
  expect([kept.length, kept.includes('wh_0'), kept.includes('wh_1499')]).toEqual([1_000, false, true]);
});
