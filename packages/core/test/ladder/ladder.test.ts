import { expect, it } from 'vitest';
import { adviseByPerson, newLadder } from '../../src/ladder/ladder.ts';
import { aLadder, attempt, tell } from './a-ladder.ts';
import { aFailedStep } from './fake-ports.ts';

it('a new ladder has no policy, decision or seen skill, and vouches for none', () => {
  const state = aLadder({ start_level: 2 });
  expect(newLadder(state)).toEqual({
    ...state,
    policy: null,
    decided: null,
    seen_skills: [],
    has_followed: false,
    revision: 0,
    vouches: false,
  });
});

it('the pipeline of a step vouches for what its ladder learns', () => {
  expect(aFailedStep()).toMatchObject({ vouches: true, has_followed: false });
});

it('the advice of a person answers the last failure', () => {
  const history = ['f', 'g', 'h'].map((fingerprint) => attempt(1, fingerprint));
  const { advice, command } = adviseByPerson(newLadder(aLadder({ history })), 'round it', 3);
  const given = { from_level: 5, label: 'human', instructions: 'round it', suggested_executor_level: 3 };
  expect(advice).toEqual([{ ...given, fingerprint: 'h' }]);
  expect(command).toMatchObject({ type: 'execute', level: 3 });
  const first = adviseByPerson(newLadder(tell(aLadder(), [])), 'round it', 3);
  expect(first.advice).toEqual([{ ...given, fingerprint: '' }]);
});
