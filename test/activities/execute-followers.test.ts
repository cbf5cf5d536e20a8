import { expect, it } from 'vitest';
import { executeFollowers } from '../../src/activities/execute-followers.ts';

const done = { endpoint: 'http://one', cost_usd: 0, duration_ms: 1 };
const followers = ['a', 'b', 'c'].map((step_id) => ({ step_id, escalates: step_id === 'b' }));
function always(): boolean {
  return true;
}

async function follow(
  execute: (stepId: string) => Promise<typeof done | null>,
  hasTime: (executed: number) => boolean = always,
) {
  const executed: string[] = [];
  const followed = await executeFollowers(
    followers,
    () => hasTime(executed.length),
    ({ step_id }) => {
      executed.push(step_id);
      return execute(step_id);
    },
  );
  return { executed: executed.join(' '), followed };
}

it('each is executed after the one before it has succeeded', async () => {
  const { executed, followed } = await follow(async () => done);
  expect(executed).toBe('a b c');
  expect(followed).toEqual(['a', 'b', 'c'].map((step_id) => ({ step_id, done })));
});

it.each([
  ['ends otherwise', async () => null],
  ['throws', () => Promise.reject(new Error('no database'))],
])('the first that %s is told, and is the last', async (_, end) => {
  const { executed, followed } = await follow((id) => (id === 'b' ? end() : Promise.resolve(done)));
  expect(executed).toBe('a b');
  expect(followed).toEqual([
    { step_id: 'a', done },
    { step_id: 'b', done: null },
  ]);
});

it('none begins when the time is over', async () => {
  const { executed, followed } = await follow(
    async () => done,
    (count) => count < 1,
  );
  expect(executed).toBe('a');
  expect(followed).toHaveLength(1);
});
