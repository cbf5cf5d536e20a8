/** The answers of the run machine in races, in the notation of machine-stories.ts: `xa` calls off a unit in flight. */
import type { PlannedStep, RunPlan } from '../../src/run/plan.ts';
import { aPlan } from './a-plan.ts';
import { given } from './machine-stories.ts';

function two(count: number) {
  return { race: { count, of: [0, 1] } };
}
const continues = { continues: true } as const;
/** Three agents, and a step that needs the first of them. */
const three = given(aPlan(['a', 'b', 'c', 'j a b c']), {
  a: continues,
  b: continues,
  c: continues,
  j: { race: { count: 1, of: [0, 1, 2] } },
});
/** A step with rounds or items and another one, of which the first is enough. */
function racing(a: Partial<PlannedStep>): RunPlan {
  return given(aPlan(['a', 'b', 'j a b']), {
    a: { decides: true, ...a, ...continues },
    b: continues,
    j: two(1),
  });
}
const looping = racing({ repeats: true });
function items(each: object): RunPlan {
  return given(aPlan(['a', 'b a']), { a: { decides: true, each } });
}

export const raceStories: [string, RunPlan, script: string[], said: string[], states: string][] = [
  [
    'the first success starts the step that waits for it, and calls off the others',
    three,
    ['b succeeded', 'a cancelled', 'j succeeded', 'c cancelled'],
    ['+a +b +c', 'xa xc +j', '', '', 'succeeded'],
    'cancelled succeeded cancelled succeeded',
  ],
  [
    'a success or failure that comes after that changes nothing',
    three,
    ['b succeeded', 'a succeeded', 'c failed', 'j succeeded'],
    ['+a +b +c', 'xa xc +j', '', '', 'succeeded'],
    'succeeded succeeded failed succeeded',
  ],
  [
    'a failure is none of the race while another may succeed',
    three,
    ['a failed', 'b unknown', 'c succeeded', 'j succeeded'],
    ['+a +b +c', '', '', '+j', 'succeeded'],
    'failed unknown succeeded succeeded',
  ],
  [
    'with too few that can succeed, the step fails at once and the others are called off',
    given(three, { j: { race: { count: 2, of: [0, 1, 2] } } }),
    ['a failed', 'b failed', 'c cancelled'],
    [
      '+a +b +c',
      '',
      'xc j=failed',
      'failed (step j: 2 of 3 steps are needed, at most 1 can succeed; first step a: failed)',
    ],
    'failed failed cancelled failed',
  ],
  [
    'a race that is lost may be one that the run continues without',
    given(three, { j: { race: { count: 3, of: [0, 1, 2] }, ...continues } }),
    ['a failed', 'c cancelled', 'b cancelled'],
    ['+a +b +c', 'xb xc j=failed', '', 'succeeded'],
    'failed cancelled cancelled failed',
  ],
  [
    'a race whose steps are all skipped is skipped',
    given(three, { a: { decides: true }, b: { decides: true }, c: { decides: true } }),
    ['a left', 'b left', 'c left'],
    ['(a b c)', '', '', 'j=skipped succeeded'],
    'skipped skipped skipped skipped',
  ],
  [
    'what only the race needs is never begun, and waits for nothing any more',
    given(aPlan(['a', 'b', 'c b', 'd c', 'j a d'], 2), { j: { race: { count: 1, of: [0, 3] } } }),
    ['b waits', 'a succeeded', 'b cancelled', 'j succeeded'],
    ['+a +b', '?b', 'c=cancelled d=cancelled !b +j', '', 'succeeded'],
    'succeeded cancelled cancelled cancelled succeeded',
  ],
  [
    'a step that another one needs too goes on',
    given(aPlan(['a', 'b', 'j a b', 'k b']), { j: two(1) }),
    ['a succeeded', 'j succeeded', 'b succeeded', 'k succeeded'],
    ['+a +b', '+j', '', '+k', 'succeeded'],
    'succeeded succeeded succeeded succeeded',
  ],
  [
    'a step that is mentioned and takes no part must have succeeded',
    given(aPlan(['a', 'b', 'p', 'j a b p']), { a: continues, b: continues, j: two(1) }),
    ['a succeeded', 'b cancelled', 'p succeeded', 'j succeeded'],
    ['+a +b +p', 'xb', '', '+j', 'succeeded'],
    'succeeded cancelled succeeded succeeded',
  ],
  [
    'in a pause the others are called off, and the step begins on resume, once',
    three,
    ['pause', 'a succeeded', 'b succeeded', 'c cancelled', 'resume', 'j succeeded'],
    ['+a +b +c', '', 'xb xc', '', '', '+j', 'succeeded'],
    'succeeded succeeded cancelled succeeded',
  ],
  [
    'one whose ladder has begun is called off; one that asks a person, or would climb after a pause, is given up',
    given(aPlan(['a', 'b', 'c', 'd', 'j a b c d']), {
      a: continues,
      b: continues,
      c: continues,
      d: continues,
      j: { race: { count: 1, of: [0, 1, 2, 3] } },
    }),
    ['b escalates', 'c escalates', 'c asks', 'pause', 'd escalates', 'a succeeded', 'b cancelled'],
    ['+a +b +c +d', '^b', '^c', '?c', '', '', 'xb !c !d', ''],
    'succeeded cancelled escalating escalating pending',
  ],
  [
    'a loser that would climb or wait is given up',
    three,
    ['a succeeded', 'b escalates', 'c waits', 'b cancelled', 'c cancelled', 'j succeeded'],
    ['+a +b +c', 'xb xc +j', '!b', '!c', '', '', 'succeeded'],
    'succeeded cancelled cancelled succeeded',
  ],
  [
    'a loser with items is called off item by item, and one that is being decided once that is known',
    given(aPlan(['a', 'b', 'c', 'j a b c'], 3), {
      b: { decides: true, each: { max_parallel: 2 }, ...continues },
      c: { decides: true, ...continues },
      j: { race: { count: 1, of: [0, 1, 2] } },
    }),
    ['b has 4', 'b/1 waits', 'a succeeded', 'c goes', 'b/1 cancelled', 'b/2 succeeded', 'j succeeded'],
    ['(b c) +a', '+b/1 +b/2', '?b/1 +b/3', 'xb/2 xb/3 !b/1', 'c=cancelled', '+j', '', ''],
    'succeeded running cancelled succeeded',
  ],
  [
    'winners that were reused decide a race from the beginning: the losers do not happen again',
    { ...three, reused: [1, 3] },
    [],
    ['a=cancelled c=cancelled succeeded'],
    'cancelled reused cancelled reused',
  ],
  [
    'a loser with rounds ends with the round in flight, which is not judged',
    looping,
    ['a has 1', 'b succeeded', 'a/1 succeeded', 'j succeeded'],
    ['(a) +b', '+a/1', 'xa/1 +j', 'a=cancelled', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'a loser whose round is being judged ends with the judgement',
    looping,
    ['a has 1', 'a/1 succeeded', 'b succeeded', 'a/1 again', 'j succeeded'],
    ['(a) +b', '+a/1', '=a/1', '+j', 'a=cancelled', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'a loser that waits between two rounds gives that up',
    looping,
    ['a has 1', 'a/1 succeeded', 'a/1 later', 'b succeeded', 'a/2 cancelled', 'j succeeded'],
    ['(a) +b', '+a/1', '=a/1', '?a/2', '!a/2 +j', 'a=cancelled', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'a loser whose next round has not begun ends at once',
    looping,
    ['a has 1', 'a/1 succeeded', 'pause', 'a/1 again', 'b succeeded', 'resume', 'j succeeded'],
    ['(a) +b', '+a/1', '=a/1', '', '', 'a=cancelled', '+j', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'also after rounds between which it has waited',
    looping,
    [
      ...['a has 1', 'a/1 succeeded', 'a/1 later', 'a/2 decided', 'a/2 succeeded', 'pause', 'a/2 again'],
      ...['b succeeded', 'resume', 'j succeeded'],
    ],
    ['(a) +b', '+a/1', '=a/1', '?a/2', '^a/2', '=a/2', '', '', 'a=cancelled', '+j', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'what a race within a race has called off is not called off again',
    given(aPlan(['a', 'b', 'c', 'j a b', 'k c j']), {
      a: continues,
      b: continues,
      c: continues,
      j: { ...two(1), ...continues },
      k: { race: { count: 1, of: [2, 3] } },
    }),
    ['a succeeded', 'c succeeded', 'b cancelled', 'j cancelled', 'k succeeded'],
    ['+a +b +c', 'xb +j', 'xj +k', '', '', 'succeeded'],
    'succeeded cancelled succeeded cancelled succeeded',
  ],
  [
    'a step that takes no part and fails after the race is won skips the step',
    given(aPlan(['a', 'b', 'p', 'j a b p']), { a: continues, b: continues, p: continues, j: two(1) }),
    ['a succeeded', 'p failed', 'b cancelled'],
    ['+a +b +p', 'xb', 'j=skipped', 'succeeded'],
    'succeeded cancelled failed skipped',
  ],
  [
    'so does one whose next item has not begun',
    racing({ each: { max_parallel: 1 } }),
    ['a has 2', 'pause', 'a/1 succeeded', 'b succeeded', 'resume', 'j succeeded'],
    ['(a) +b', '+a/1', '', '', 'a=cancelled', '+j', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'a loser whose items end because others failed is called off',
    racing({ each: {} }),
    ['a has 3', 'a/1 failed', 'b succeeded', 'a/2 cancelled', 'a/3 cancelled', 'j succeeded'],
    ['(a) +b', '+a/1 +a/2 +a/3', '', 'xa/2 xa/3 +j', '', 'a=cancelled', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'one whose other items are called off already is not called off again',
    racing({ each: { enough: 1 } }),
    ['a has 2', 'a/1 succeeded', 'b succeeded', 'a/2 cancelled', 'j succeeded'],
    ['(a) +b', '+a/1 +a/2', 'xa/2', '+j', 'a=cancelled', 'succeeded'],
    'cancelled succeeded succeeded',
  ],
  [
    'steps of a race that have ended stay as they are, also those with items',
    given(aPlan(['a', 'b', 'c', 'd', 'j a b c d']), {
      a: { decides: true, each: {}, ...continues },
      b: { decides: true, each: {}, ...continues },
      c: continues,
      d: continues,
      j: { race: { count: 2, of: [0, 1, 2, 3] } },
    }),
    ['a has 1', 'b has 1', 'a/1 succeeded', 'b/1 failed', 'c succeeded', 'd cancelled', 'j succeeded'],
    ['(a b) +c +d', '+a/1', '+b/1', 'a=succeeded', 'b=failed', 'xd +j', '', 'succeeded'],
    'succeeded failed succeeded cancelled succeeded',
  ],
  [
    'a loser that was to be decided after a pause is not decided',
    given(aPlan(['a', 'x', 'b x', 'j a b']), {
      a: continues,
      b: { decides: true, ...continues },
      j: { race: { count: 1, of: [0, 2] } },
    }),
    ['pause', 'x succeeded', 'a succeeded', 'resume', 'j succeeded'],
    ['+a +x', '', '', 'b=cancelled', '+j', 'succeeded'],
    'succeeded succeeded cancelled succeeded',
  ],
  [
    'a step that is due in a pause begins once, though a further step of its race succeeds',
    given(aPlan(['a', 'b', 'j a b', 'k b']), { a: continues, b: continues, j: two(1) }),
    ['pause', 'a succeeded', 'b succeeded', 'resume', 'j succeeded', 'k succeeded'],
    ['+a +b', '', '', '', '+j +k', '', 'succeeded'],
    'succeeded succeeded succeeded succeeded',
  ],
  [
    'a race that is lost names the first step that failed, also one that another step needs',
    given(aPlan(['a', 'b', 'j a b', 'k a']), {
      a: continues,
      b: continues,
      j: two(2),
      k: { run_if: 'all_done' },
    }),
    ['a unknown', 'b cancelled'],
    [
      '+a +b',
      'xb j=failed',
      'failed (step j: 2 of 2 steps are needed, at most 1 can succeed; first step a: unknown)',
    ],
    'unknown cancelled failed skipped',
  ],
  [
    'a cancelled run calls nothing off',
    three,
    ['cancel', 'b succeeded', 'a cancelled', 'c cancelled'],
    ['+a +b +c', 'stop', '', '', 'cancelled'],
    'cancelled succeeded cancelled cancelled',
  ],
  [
    'kept answers that are almost enough leave one to come',
    items({ enough: 3 }),
    ['a has 4 sop2', 'a/3 succeeded', 'a/4 cancelled', 'b succeeded'],
    ['(a)', '+a/3 +a/4', 'xa/4', 'a=succeeded +b', 'succeeded'],
    'succeeded succeeded',
  ],
  [
    'kept items without an answer leave too few',
    items({ enough: 3 }),
    ['a has 4 k2p2'],
    ['(a)', 'a=failed failed (step a: 3 of 4 items are needed, at most 2 can count)'],
    'failed skipped',
  ],
  [
    'the first item that does not count is named, where it is known why',
    items({ enough: 3 }),
    ['a has 4', 'a/1 short', 'a/2 unsure', 'a/3 cancelled', 'a/4 cancelled'],
    [
      '(a)',
      '+a/1 +a/2 +a/3 +a/4',
      '',
      'xa/3 xa/4',
      '',
      'a=failed failed (step a: 3 of 4 items are needed, at most 2 can count; first item 2: gone)',
    ],
    'failed skipped',
  ],
  [
    'an item that counts is not named',
    items({ enough: 2 }),
    ['a has 3', 'a/1 succeeded', 'a/2 failed', 'a/3 failed'],
    [
      '(a)',
      '+a/1 +a/2 +a/3',
      '',
      '',
      'a=failed failed (step a: 2 of 3 items are needed, at most 1 can count; first item 2: gone)',
    ],
    'failed skipped',
  ],
  [
    'items that are enough end the rest, and the others do not begin',
    items({ enough: 1, max_parallel: 3 }),
    ['a has 5', 'a/2 succeeded', 'a/1 cancelled', 'a/3 cancelled', 'b succeeded'],
    ['(a)', '+a/1 +a/2 +a/3', 'xa/1 xa/3', '', 'a=succeeded +b', 'succeeded'],
    'succeeded succeeded',
  ],
  [
    'an answer that does not count is none of them',
    items({ enough: 1, judges: true }),
    ['a has 3', 'a/2 short', 'a/3 succeeded', 'a/1 cancelled', 'b succeeded'],
    ['(a)', '+a/1 +a/2 +a/3', '', 'xa/1', 'a=succeeded +b', 'succeeded'],
    'succeeded succeeded',
  ],
  [
    'items fail as long as enough are left; then the step fails at once',
    items({ enough: 2 }),
    ['a has 4', 'a/1 failed', 'a/2 short', 'a/3 waits', 'a/4 failed', 'a/3 cancelled'],
    [
      '(a)',
      '+a/1 +a/2 +a/3 +a/4',
      '',
      '',
      '?a/3',
      '!a/3',
      'a=failed failed (step a: 2 of 4 items are needed, at most 1 can count; first item 1: gone)',
    ],
    'failed skipped',
  ],
  [
    'a list with too few items fails before any begins',
    items({ enough: 3 }),
    ['a has 2'],
    ['(a)', 'a=failed failed (step a: 3 of 2 items are needed, at most 2 can count)'],
    'failed skipped',
  ],
  [
    'fewer failures may be tolerated than leave enough',
    items({ enough: 1, tolerate: 1, max_parallel: 2 }),
    ['a has 4', 'a/1 failed', 'a/2 failed', 'a/3 succeeded'],
    [
      '(a)',
      '+a/1 +a/2',
      '+a/3',
      '',
      'a=failed failed (step a: 2 of 4 items failed, 1 may; first item 1: gone)',
    ],
    'failed skipped',
  ],
  [
    'kept answers are some of the enough',
    items({ enough: 3 }),
    ['a has 4 okpo', 'a/3 succeeded', 'b succeeded'],
    ['(a)', '+a/3', 'a=succeeded +b', 'succeeded'],
    'succeeded succeeded',
  ],
  [
    'items that a condition skips do not begin, and the whole ends without them',
    items({}),
    ['a has 3 kpk', 'a/2 succeeded', 'b succeeded'],
    ['(a)', '+a/2', 'a=succeeded +b', 'succeeded'],
    'succeeded succeeded',
  ],
];
