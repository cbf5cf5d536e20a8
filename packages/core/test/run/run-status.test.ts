/** The condition of a run: the first that holds wins, whatever its state is. */
import { describe, expect, it, test } from 'vitest';
import type { Run, RunState, RunSummary } from '../../src/contracts/run.ts';
import type { Awaiting, RunStep } from '../../src/contracts/run-step.ts';
import { conditionOfRun, conditionOfStep, type RunCondition, toSentence } from '../../src/run/run-status.ts';

type Step = Pick<
  RunStep,
  'id' | 'state' | 'awaiting' | 'items' | 'max_rounds' | 'error' | 'review' | 'budget'
>;

const error = { code: 'step_failed', message: 'HTTP 500\nat line 3' };
const none = { code: 'no_instance', message: 'no instance of a is possible: 1 draining' };
const done: Step = { id: 'cut', state: 'succeeded' };

/** @param calls the steps of the open calls */
function aPause(calls: readonly string[]): NonNullable<Run['pause']> {
  const open = { capability: 'a', endpoint: 'http://x', started_at: '2026-01-01T00:00:00Z' };
  return {
    since: '2026-01-01T00:00:00Z',
    by: { id: 'key_1', name: 'ci' },
    open_calls: calls.map((step_id) => ({ ...open, step_id })),
    open_call_count: calls.length,
    open_child_runs: [],
    held_steps: 1,
  };
}

test.each<[Step['state'], readonly string[], number, string]>([
  ['running', [], 0, 'Paused'],
  ['running', ['a'], 1, 'Running'],
  ['running', ['b'], 1, 'Paused'],
  ['running', ['b'], 200, 'Running'],
  ['retrying', [], 0, 'Paused'],
  ['ready', [], 0, 'Paused'],
  ['succeeded', [], 0, 'Succeeded'],
  ['pending', [], 0, 'Queued'],
])(
  'a step that is %s in a paused run with open calls of %j, %i in all, is: %s',
  (state, calls, all, words) => {
    const pause = { ...aPause(calls), open_call_count: all };
    const found = conditionOfStep({ id: 'a', state }, { pause });
    expect([toSentence(found), found.steps]).toEqual([words, ['a']]);
  },
);

interface Told {
  readonly pause?: Run['pause'];
  readonly cancel?: Run['cancel'];
  readonly state?: RunState;
  readonly awaiting?: Awaiting[];
  readonly steps?: Step[];
  readonly step_counts?: RunSummary['step_counts'];
  readonly item_counts?: RunSummary['item_counts'];
  readonly error?: typeof error;
  readonly queue?: Run['queue'];
  readonly stalled?: Run['stalled'];
}

function sentenceOf({ state = 'running', ...rest }: Told): string {
  return toSentence(conditionOfRun({ state, ...rest }));
}

it.each(['enough', 'not_enough'])('a step was called off, and why: %s', (code) => {
  const error = { code, message: '1 of 3 steps were enough for first' };
  const found = conditionOfStep({ id: 'a', state: 'cancelled', error });
  expect([toSentence(found), found.steps]).toEqual(['Called off: 1 of 3 steps were enough for first', ['a']]);
});

test.each<[string, Told, string]>([
  [
    'all items of its only open step wait',
    { awaiting: ['callback'], steps: [{ id: 'render', state: 'running', items: { waiting: 3 } }] },
    'Waiting for a later answer: 3 of 3 items of render',
  ],
  [
    'a step pauses between two rounds',
    {
      awaiting: ['time'],
      steps: [{ id: 'poll', state: 'running', max_rounds: 9, items: { succeeded: 1, waiting: 1 } }],
    },
    'Sleeping: round 2 of poll',
  ],
  [
    'another step works meanwhile',
    {
      awaiting: ['callback'],
      steps: [
        { id: 'render', state: 'running', items: { waiting: 3 } },
        { id: 'cut', state: 'running' },
      ],
    },
    'Running: render, cut; 0 of 2 steps done',
  ],
  [
    'one of its items works meanwhile',
    {
      awaiting: ['callback'],
      steps: [{ id: 'render', state: 'running', items: { waiting: 2, running: 1 } }],
    },
    'Running: render; 0 of 1 step done',
  ],
  [
    'the list counts waiting items alone, of one open step',
    { awaiting: ['callback'], step_counts: { running: 1 }, item_counts: { waiting: 3 } },
    'Waiting for a later answer',
  ],
  [
    'the list counts a waiting item, of one open step',
    { awaiting: ['callback'], step_counts: { running: 1 }, item_counts: { waiting: 1 } },
    'Waiting for a later answer',
  ],
  [
    'the list counts waiting items, and a second open step',
    { awaiting: ['callback'], step_counts: { running: 2 }, item_counts: { waiting: 3 } },
    'Running: 0 of 2 steps done',
  ],
])('an open run waits only if nothing of it works: %s', (_, run, words) => {
  expect(sentenceOf(run)).toBe(words);
});

describe('a run that has ended', () => {
  test.each<[string, Told, string]>([
    [
      'names the step that failed, and the first line of why',
      { state: 'failed', error, steps: [done, { id: 'mix', state: 'failed' }] },
      'Failed: at mix: HTTP 500',
    ],
    [
      'names the step once, though the error of the run names it too',
      {
        state: 'failed',
        error: { code: 'step_failed', message: 'step mix: HTTP 500' },
        steps: [{ id: 'mix', state: 'failed', error }],
      },
      'Failed: at mix: HTTP 500',
    ],
    [
      'gives the reason of its failure where no step is known',
      { state: 'failed', error },
      'Failed: HTTP 500',
    ],
    [
      'gives the reason of its cancel',
      { state: 'cancelled', error: { code: 'cancelled', message: 'wrong clip' } },
      'Cancelled: wrong clip',
    ],
    [
      'names the person who cancelled it, and the reason',
      {
        state: 'cancelled',
        error: { code: 'run_cancelled', message: 'cancelled' },
        cancel: {
          by: { id: 'key_1', name: 'anna' },
          reason: 'wrong clip',
          mode: 'graceful',
          requested_at: '2026-01-01T00:00:00Z',
        },
      },
      'Cancelled by the key anna: wrong clip',
    ],
    [
      'names a person, and a key without a name by its id',
      {
        state: 'cancelled',
        cancel: { by: { id: 'usr_1', name: 'anna' }, mode: 'graceful', requested_at: '2026-01-01T00:00:00Z' },
      },
      'Cancelled by anna',
    ],
    [
      'names a key by its id where it has no name',
      {
        state: 'cancelled',
        cancel: { by: { id: 'key_1' }, mode: 'graceful', requested_at: '2026-01-01T00:00:00Z' },
      } as never,
      'Cancelled by key_1',
    ],
    ['succeeded', { state: 'succeeded', steps: [done] }, 'Succeeded'],
    [
      'counts items that failed and were tolerated',
      {
        state: 'succeeded',
        steps: [{ id: 'index', state: 'succeeded', items: { succeeded: 191, failed: 9 } }],
      },
      'Succeeded with failures: 9 of 200 items failed in index',
    ],
    [
      'counts optional steps that failed',
      { state: 'succeeded', steps: [done, { id: 'cover', state: 'failed' }] },
      'Succeeded with failures: 1 optional step failed',
    ],
    [
      'counts failed items as the list of runs has them, without their steps',
      { state: 'succeeded', step_counts: { succeeded: 2 }, item_counts: { succeeded: 191, failed: 9 } },
      'Succeeded with failures: 9 of 200 items failed',
    ],
    [
      'names up to three steps, and the first line of its own error',
      {
        state: 'failed',
        error,
        steps: ['a', 'b', 'c'].map((id) => ({ id, state: 'unknown', error: { ...error, message: 'own' } })),
      },
      'Failed: at a, b, c: HTTP 500',
    ],
    [
      'counts the steps beyond three',
      { state: 'failed', steps: ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, state: 'failed' })) },
      'Failed: at a, b, c and 2 more',
    ],
    ['failed, without a known reason', { state: 'failed' }, 'Failed'],
    ['was cancelled, without a given reason', { state: 'cancelled' }, 'Cancelled'],
    [
      'counts optional steps that failed, and lists three findings at most',
      {
        state: 'succeeded',
        steps: [
          { id: 'x', state: 'failed' },
          { id: 'y', state: 'unknown' },
          ...['a', 'b', 'c'].map((id): Step => ({ id, state: 'succeeded', items: { failed: 1 } })),
        ],
      },
      'Succeeded with failures: 2 optional steps failed; 1 of 1 item failed in a; 1 of 1 item failed in b',
    ],
    [
      'counts a single failed item in the list of runs',
      { state: 'succeeded', item_counts: { failed: 1 } },
      'Succeeded with failures: 1 of 1 item failed',
    ],
    [
      'succeeded when all items did',
      { state: 'succeeded', step_counts: { succeeded: 2 }, item_counts: { succeeded: 200 } },
      'Succeeded',
    ],
  ])('%s', (_, told, words) => expect(sentenceOf(told)).toBe(words));
});

describe('a run that has not ended', () => {
  test.each<[string, Told, string]>([
    [
      'waits for budget when no item of its for_each makes progress',
      {
        awaiting: ['budget'],
        steps: [{ id: 'chapter', state: 'running', items: { succeeded: 2, waiting: 4 } }],
      },
      'Waiting for budget: 4 of 6 items of chapter',
    ],
    [
      'names the budget of a key or a label that it waits for',
      {
        awaiting: ['budget'],
        steps: [{ id: 'mix', state: 'waiting', awaiting: 'budget', budget: 'key:k by day' }],
      },
      'Waiting for budget: mix: key:k by day',
    ],
    [
      'runs while one item makes progress and no review is open',
      { steps: [{ id: 'chapter', state: 'running', items: { running: 1, pending: 5 } }] },
      'Running: chapter; 0 of 1 step done',
    ],
    [
      'waits for a review whatever else it does',
      {
        awaiting: ['review', 'time'],
        steps: [
          { id: 'a', state: 'running' },
          { id: 'mix', state: 'in_review' },
        ],
      },
      'Waiting for review: mix',
    ],
    [
      'that waits for an instance shows that although it is paused',
      {
        state: 'paused',
        awaiting: ['capability'],
        steps: [{ id: 'mix', state: 'waiting', awaiting: 'capability' }],
      },
      'Waiting for an instance: mix',
    ],
    [
      'is paused, and the list does not know whether a call is open',
      { state: 'paused', steps: [{ id: 'mix', state: 'running' }] },
      'Paused: 1 step begun, without new calls',
    ],
    [
      'is paused by a person, and open calls will finish',
      {
        state: 'paused',
        steps: [{ id: 'mix', state: 'running', items: { running: 2, succeeded: 4 } }],
        pause: aPause(['mix', 'mix']),
      },
      'Paused by the key ci: 2 open calls of mix will finish',
    ],
    [
      'is paused between two calls of its items',
      {
        state: 'paused',
        steps: [{ id: 'mix', state: 'running', items: { pending: 2, succeeded: 4 } }],
        pause: aPause([]),
      },
      'Paused by the key ci',
    ],
    [
      'waits for the money of its ladder, which is no question about its input',
      { awaiting: ['budget'], steps: [{ id: 'mix', state: 'in_review', awaiting: 'budget' }] },
      'Waiting for budget: mix',
    ],
    [
      'tries again',
      {
        steps: [
          { id: 'mix', state: 'retrying' },
          { id: 'a', state: 'running' },
        ],
      },
      'Retrying: mix',
    ],
    [
      'gives the reason of its next attempt',
      { steps: [{ id: 'mix', state: 'retrying', error }] },
      'Retrying: mix: HTTP 500',
    ],
    [
      'names the question that a person answers',
      { awaiting: ['review'], steps: [{ id: 'mix', state: 'in_review', review: 'Is it loud?' }] },
      'Waiting for review: mix: Is it loud?',
    ],
    [
      'shows no title with expressions: its review has it',
      { awaiting: ['review'], steps: [{ id: 'mix', state: 'in_review', review: 'Is {{ job.id }} loud?' }] },
      'Waiting for review: mix',
    ],
    [
      'names the child run whose step waits for a review',
      { awaiting: ['review', 'run'], steps: [{ id: 'sub', state: 'waiting', awaiting: 'run' }] },
      'Waiting for review: in the child run of sub',
    ],
    [
      'sleeps when only a timer is left',
      { awaiting: ['time'], steps: [done, { id: 'night', state: 'waiting', awaiting: 'time' }] },
      'Sleeping: night',
    ],
    [
      'runs while a timer waits beside a step at work',
      {
        awaiting: ['time'],
        steps: [
          { id: 'night', state: 'waiting', awaiting: 'time' },
          { id: 'a', state: 'running' },
        ],
      },
      'Running: a; 0 of 2 steps done',
    ],
    [
      'waits for its child run',
      { awaiting: ['run'], steps: [{ id: 'sub', state: 'waiting', awaiting: 'run' }] },
      'Waiting for a child run: sub',
    ],
    [
      'stops',
      { state: 'cancelling', steps: [{ id: 'a', state: 'running' }] },
      'Cancelling: waiting for 1 running step',
    ],
    [
      'stops, and waits for a step that tries again',
      { state: 'cancelling', step_counts: { retrying: 2, waiting: 1 } },
      'Cancelling: waiting for 2 running steps',
    ],
    ['stops, and has no wait', { state: 'cancelling', step_counts: { pending: 1 } }, 'Cancelling'],
    [
      'is paused, and a step that tries again does so after the resume',
      { state: 'paused', step_counts: { retrying: 1 } },
      'Paused: 1 step will retry after the resume',
    ],
    ['is paused, and nothing runs', { state: 'paused', steps: [done] }, 'Paused'],
    ['runs, and has no step yet', {}, 'Running'],
    [
      'waits for a review though its cause is only known by the step',
      { steps: [{ id: 'mix', state: 'in_review' }] },
      'Waiting for review: mix',
    ],
    [
      'does not wait for the items that a failed step left behind',
      {
        steps: [
          { id: 'cut', state: 'failed', items: { failed: 1, in_review: 1 } },
          { id: 'mix', state: 'running' },
        ],
      },
      'Running: mix; 1 of 2 steps done',
    ],
    [
      'runs while a timer waits beside a step that is about to begin',
      { awaiting: ['time'], step_counts: { waiting: 1, ready: 1 } },
      'Running: 0 of 2 steps done',
    ],
    [
      'names the steps that try again, and no cause of several',
      { steps: ['a', 'b', 'c', 'd'].map((id) => ({ id, state: 'retrying', error })) },
      'Retrying: a, b, c and 1 more',
    ],
    [
      'waits for an event',
      { awaiting: ['event', 'run'], steps: [{ id: 'paid', state: 'waiting', awaiting: 'event' }] },
      'Waiting for an event: paid',
    ],
    [
      'waits for a free slot rather than for the next attempt of another step',
      {
        awaiting: ['retry', 'callback', 'slot'],
        steps: [
          { id: 'a', state: 'waiting', awaiting: 'slot' },
          { id: 'b', state: 'waiting', awaiting: 'retry' },
        ],
      },
      'Waiting for a free slot: a',
    ],
    [
      'waits for its next attempt rather than for a later answer',
      {
        awaiting: ['callback', 'retry'],
        steps: [
          { id: 'a', state: 'waiting', awaiting: 'callback' },
          { id: 'b', state: 'waiting', awaiting: 'retry' },
        ],
      },
      'Waiting for its next attempt: b',
    ],
    [
      'runs while one item is about to begin and others wait, as the list of runs counts them',
      { awaiting: ['callback'], step_counts: { running: 1 }, item_counts: { waiting: 3, ready: 1 } },
      'Running: 0 of 1 step done',
    ],
    [
      'is paused, with an open call, and with a step that tries again',
      {
        state: 'paused',
        steps: [
          { id: 'mix', state: 'running' },
          { id: 'a', state: 'retrying' },
        ],
        pause: aPause(['mix']),
      },
      'Paused by the key ci: 1 open call of mix will finish; 1 step will retry after the resume',
    ],
    ['tries again, as the list of runs knows', { step_counts: { retrying: 1 } }, 'Retrying'],
    [
      'names each of two steps that wait for budget',
      {
        awaiting: ['budget'],
        steps: ['a', 'b'].map((id) => ({ id, state: 'waiting', awaiting: 'budget', budget: 'key:k by day' })),
      },
      'Waiting for budget: a, b',
    ],
    [
      'waits for a review in a child run without a name',
      { awaiting: ['review'], steps: [{ id: 'a', state: 'running' }] },
      'Waiting for review',
    ],
    [
      'names only the steps with a child run',
      {
        awaiting: ['budget', 'run'],
        steps: [
          { id: 'sub', state: 'waiting', awaiting: 'run' },
          { id: 'a', state: 'running' },
        ],
      },
      'Waiting for budget: in the child run of sub',
    ],
    ['has not begun', { state: 'queued' }, 'Queued'],
  ])('%s', (_, told, words) => expect(sentenceOf(told)).toBe(words));

  it('has the condition that the list of runs knows', () => {
    const counts = { succeeded: 3, running: 1, pending: 3 };
    expect(toSentence(conditionOfRun({ state: 'running', step_counts: counts }))).toBe(
      'Running: 3 of 7 steps done',
    );
    expect(conditionOfRun({ state: 'running', awaiting: ['budget'], step_counts: counts }).kind).toBe(
      'budget',
    );
  });

  it('names another run that works on the same failure', () => {
    const follows = { escalation_id: 'esc_1', run_id: 'run_2' };
    const found = conditionOfRun({ state: 'running', step_counts: { retrying: 1 }, follows });
    expect(found).toEqual<RunCondition>({
      kind: 'run',
      title: 'Waiting for another run',
      detail: 'it works on the same failure',
      steps: [],
    });
  });
});

describe('the steps of a condition', () => {
  const items = { failed: 1 };
  test.each<[string, Told, readonly string[]]>([
    ['those that failed', { state: 'failed', steps: [done, { id: 'x', state: 'failed' }] }, ['x']],
    [
      'those that failed, then those with failed items',
      {
        state: 'succeeded',
        steps: [
          { id: 'each', state: 'succeeded', items },
          done,
          { id: 'x', state: 'failed' },
          { id: 'y', state: 'unknown' },
        ],
      },
      ['x', 'y', 'each'],
    ],
    [
      'those that try again',
      {
        steps: [
          { id: 'x', state: 'retrying' },
          { id: 'a', state: 'running' },
        ],
      },
      ['x'],
    ],
    [
      'those that wait',
      {
        steps: [{ id: 'a', state: 'running' }, ...['x', 'y'].map((id): Step => ({ id, state: 'in_review' }))],
      },
      ['x', 'y'],
    ],
    [
      'those with a child run that waits',
      { awaiting: ['review'], steps: [done, { id: 'sub', state: 'waiting', awaiting: 'run' }] },
      ['sub'],
    ],
    ['those that run', { steps: [done, { id: 'a', state: 'running' }] }, ['a']],
    ['none of a run that succeeded', { state: 'succeeded', steps: [done] }, []],
  ])('are %s', (_, { state = 'running', ...told }, steps) => {
    expect(conditionOfRun({ state, ...told }).steps).toEqual(steps);
  });
});

describe('a step', () => {
  test.each<[Step, readonly Awaiting[], string]>([
    [{ id: 'a', state: 'failed', error }, [], 'Failed: HTTP 500'],
    [{ id: 'a', state: 'retrying', error }, [], 'Retrying: HTTP 500'],
    [{ id: 'a', state: 'waiting', awaiting: 'run' }, [], 'Waiting for a child run'],
    [
      { id: 'a', state: 'waiting', awaiting: 'budget', budget: 'label:team=ads by month' },
      [],
      'Waiting for budget: label:team=ads by month',
    ],
    [
      { id: 'a', state: 'running', items: { waiting: 4, succeeded: 2 } },
      ['budget'],
      'Waiting for budget: 4 of 6 items of a',
    ],
    [{ id: 'a', state: 'running', items: { waiting: 4, running: 2 } }, ['budget'], 'Running'],
    [{ id: 'a', state: 'running', items: { in_review: 1 } }, [], 'Waiting for review: 1 of 1 item of a'],
    [
      { id: 'a', state: 'succeeded', items: { succeeded: 1, unknown: 1 } },
      [],
      'Succeeded with failures: 1 of 2 items failed',
    ],
    [{ id: 'a', state: 'running', items: { waiting: 4, ready: 1 } }, ['budget'], 'Running'],
    [{ id: 'a', state: 'running', items: { waiting: 4, retrying: 1 } }, ['budget'], 'Running'],
    [{ id: 'a', state: 'retrying', error: none }, [], 'Waiting for an instance'],
    [{ id: 'a', state: 'retrying', error: { ...none, code: 'budget_reserved' } }, [], 'Waiting for budget'],
    [
      { id: 'a', state: 'running', items: { retrying: 2, succeeded: 1 } },
      ['capability'],
      'Waiting for an instance: 2 of 3 items of a',
    ],
    [{ id: 'a', state: 'running', items: { retrying: 2, running: 1 } }, ['capability'], 'Running'],
    [{ id: 'a', state: 'running', items: { retrying: 2 } }, [], 'Running'],
    [{ id: 'a', state: 'in_review', awaiting: 'budget' }, ['budget'], 'Waiting for budget'],
    [
      { id: 'a', state: 'running', items: { in_review: 2 } },
      ['budget'],
      'Waiting for budget: 2 of 2 items of a',
    ],
    [
      { id: 'a', state: 'running', items: { in_review: 2 } },
      ['budget', 'review'],
      'Waiting for review: 2 of 2 items of a',
    ],
    [{ id: 'a', state: 'pending' }, ['budget'], 'Queued'],
    [{ id: 'a', state: 'running', items: { succeeded: 1, pending: 1 } }, ['budget'], 'Running'],
    [
      { id: 'a', state: 'running', items: { waiting: 1 } },
      ['budget'],
      'Waiting for budget: 1 of 1 item of a',
    ],
    [{ id: 'a', state: 'running', error: none }, [], 'Running'],
    [{ id: 'a', state: 'unknown' }, [], 'Failed'],
    [{ id: 'a', state: 'cancelled' }, [], 'Cancelled'],
    [{ id: 'a', state: 'retrying' }, [], 'Retrying'],
    [{ id: 'a', state: 'reused' }, [], 'Succeeded'],
    [{ id: 'a', state: 'succeeded', items: { succeeded: 2 } }, [], 'Succeeded'],
  ])('%j has its own condition', (step, ofRun, words) => {
    const found = conditionOfStep(step, { awaiting: [...ofRun] });
    expect(toSentence(found)).toBe(words);
    expect(found.steps).toEqual([step.id]);
  });
});

describe('a queued run has the reason for which it waits', () => {
  const turn = { reason: 'concurrency', key: 'gpu', limit: 1, place: 2 } as const;
  test.each<[Run['queue'], string]>([
    [undefined, 'Queued'],
    [
      { ...turn, holders: ['run_1'] },
      'Queued: number 2 for the key "gpu"; at most 1 run at a time, open: run_1',
    ],
    [
      { ...turn, place: 1, limit: 3, holders: ['run_1', 'run_2', 'run_3'] },
      'Queued: number 1 for the key "gpu"; at most 3 runs at a time, open: run_1, run_2, run_3',
    ],
    [
      { ...turn, holders: [] },
      'Queued: number 2 for the key "gpu"; at most 1 run at a time, none of which is open',
    ],
    [{ reason: 'temporal' }, 'Queued: Temporal has not accepted it yet'],
    [{ reason: 'worker' }, 'Queued: no worker has begun it yet'],
  ])('%j', (queue, words) => {
    expect(sentenceOf({ state: 'queued', ...(queue === undefined ? {} : { queue }) })).toBe(words);
    expect(sentenceOf({ state: 'running', ...(queue === undefined ? {} : { queue }) })).toBe('Running');
  });
});

test.each<[RunState, string]>([
  ['queued', 'Its workflow cannot make progress: no key'],
  ['running', 'Its workflow cannot make progress: no key'],
  ['paused', 'Its workflow cannot make progress: no key'],
  ['cancelling', 'Its workflow cannot make progress: no key'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
])('a run that is %s and whose workflow cannot make progress: %s', (state, words) => {
  const stalled = { message: 'no key\nat line 3', since: '2026-11-28T05:00:00.000Z' };
  expect(sentenceOf({ state, stalled, awaiting: ['review'] })).toBe(words);
});
