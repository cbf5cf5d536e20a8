import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createTurns } from '../src/pacing.ts';

it('pieces run in their order, and other work runs between two of them', async () => {
  const takeTurn = createTurns(setImmediate);
  const seen: string[] = [];
  const work = async (name: string): Promise<void> => {
    await takeTurn();
    seen.push(name);
  };
  const others = async (): Promise<void> => {
    for (let n = 0; n < 4; n++) {
      await setImmediate();
      seen.push('-');
    }
  };
  await Promise.all([others(), work('a'), work('b'), work('c')]);
  expect(seen.join('').replace(/-+/g, '-')).toMatch(/^-?a-b-c-?$/);
});
