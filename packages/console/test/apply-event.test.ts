import type { EventType, RunEvent } from '@capstan/core/contracts/event';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { describe, expect, test } from 'vitest';
import { applyEvents, applyMissed, applyRunFrame, beginningOf, momentOf } from '../src/api/apply-event.ts';

const second = (at: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString();

function aStep(id: string): RunStep {
  return {
    id,
    capability: 'trim',
    state: 'pending',
    attempts: 0,
    revision: 0,
    cost_usd: 0,
    started_at: null,
    finished_at: null,
  };
}

const run: Run = {
  run_id: 'run_1',
  job_id: 'job_1',
  pipeline: 'reel',
  version: '1',
  state: 'queued',
  priority: 'standard',
  budget_ceiling_usd: null,
  cost_usd: 0,
  reserved_usd: 0,
  labels: {},
  created_at: second(0),
  started_at: null,
  finished_at: null,
  steps: [aStep('a'), aStep('b')],
  links: { self: '', events: '' },
};

let seq = 0;
function anEvent(at: number, type: EventType, rest: Partial<RunEvent> = {}): RunEvent {
  seq += 1;
  return { seq, at: second(at), run_id: 'run_1', type, data: {}, ...rest };
}

const log: readonly RunEvent[] = [
  anEvent(1, 'run.started'),
  anEvent(2, 'step.started', { step_id: 'a' }),
  anEvent(2, 'step.routed', { step_id: 'a', attempt: 1, data: { endpoint: 'http://x' } }),
  anEvent(4, 'step.succeeded', { step_id: 'a', data: { cost_usd: 0.25, duration_ms: 2_000 } }),
  anEvent(5, 'step.waiting', { step_id: 'b', data: { awaiting: 'budget' } }),
  anEvent(8, 'step.failed', { step_id: 'b', data: { error: { code: 'no_money', message: 'none is left' } } }),
  anEvent(9, 'run.failed', { data: { error: { code: 'step_failed', message: 'b failed' } } }),
];

test('a log makes the run what it is at its end', () => {
  const { run: end } = applyEvents({ run, items: new Map() }, log);
  expect(end).toMatchObject({
    state: 'failed',
    started_at: second(1),
    finished_at: second(9),
    error: { code: 'step_failed' },
    steps: [
      {
        state: 'succeeded',
        attempts: 1,
        endpoint: 'http://x',
        cost_usd: 0.25,
        started_at: second(2),
        finished_at: second(4),
      },
      { state: 'failed', error: { code: 'no_money' }, finished_at: second(8) },
    ],
  });
});

test('the reason for a wait disappears when the step continues', () => {
  const waiting = applyEvents({ run, items: new Map() }, log.slice(0, 5)).run;
  expect(waiting.steps[1]).toMatchObject({ state: 'waiting', awaiting: 'budget' });
  const on = applyEvents({ run: waiting, items: new Map() }, [
    anEvent(6, 'step.started', { step_id: 'b' }),
  ]).run;
  expect(on.steps[1]).not.toHaveProperty('awaiting');
});

test('a step that has ended stays as it ended, and only its cost is corrected', () => {
  const { run: end } = applyEvents({ run, items: new Map() }, [
    ...log,
    anEvent(10, 'step.started', { step_id: 'a' }),
    anEvent(11, 'step.retrying', { step_id: 'a', data: { cost_usd: 0.1 } }),
  ]);
  expect(end.steps[0]).toMatchObject({ state: 'succeeded', cost_usd: 0.35, finished_at: second(4) });
});

test('events of other runs and of unknown steps change nothing', () => {
  const { run: same } = applyEvents({ run, items: new Map() }, [
    anEvent(1, 'run.started', { run_id: 'run_2' }),
    anEvent(1, 'step.started', { step_id: 'z' }),
  ]);
  expect(same).toEqual(run);
});

test('items are counted by the state that they move to', () => {
  const moment = applyEvents({ run, items: new Map() }, [
    anEvent(1, 'step.started', { step_id: 'a', data: { items: 3 } }),
    anEvent(2, 'step.started', { step_id: 'a', item: 1 }),
    anEvent(2, 'step.started', { step_id: 'a', item: 2 }),
    anEvent(3, 'step.succeeded', { step_id: 'a', item: 1 }),
    anEvent(4, 'step.failed', { step_id: 'a', item: 2 }),
  ]);
  expect(moment.run.steps[0]?.items).toMatchObject({ pending: 1, succeeded: 1, failed: 1 });
  expect(moment.run.steps[0]?.state).toBe('running');
});

test('rounds are counted as they come, also one that waits for its time first', () => {
  const count = (length: number) => {
    const events = [
      anEvent(1, 'step.started', { step_id: 'a', data: { items: 1 } }),
      anEvent(1, 'step.started', { step_id: 'a', item: 1 }),
      anEvent(2, 'step.succeeded', { step_id: 'a', item: 1, data: { cost_usd: 0.25 } }),
      anEvent(2, 'step.round', { step_id: 'a', item: 1, data: { last: false } }),
      anEvent(2, 'step.waiting', { step_id: 'a', item: 2, data: { awaiting: 'time' } }),
      anEvent(3, 'step.started', { step_id: 'a', item: 2 }),
      anEvent(4, 'step.succeeded', { step_id: 'a', item: 2, data: { cost_usd: 0.5 } }),
      anEvent(4, 'step.round', { step_id: 'a', item: 2, data: { last: true } }),
      anEvent(4, 'step.succeeded', { step_id: 'a', data: { rounds: 2 } }),
    ];
    const [step] = applyEvents({ run, items: new Map() }, events.slice(0, length)).run.steps;
    const open = Object.entries(step?.items ?? {}).filter(([, count]) => count > 0);
    return { state: step?.state, items: Object.fromEntries(open), cost_usd: step?.cost_usd };
  };
  expect(count(4)).toEqual({ state: 'running', items: { succeeded: 1, pending: 1 }, cost_usd: 0.25 });
  expect(count(5)).toEqual({ state: 'running', items: { succeeded: 1, waiting: 1 }, cost_usd: 0.25 });
  expect(count(6)).toEqual({ state: 'running', items: { succeeded: 1, running: 1 }, cost_usd: 0.25 });
  expect(count(9)).toEqual({ state: 'succeeded', items: { succeeded: 2 }, cost_usd: 0.75 });
});

test('results of equal calls are counted, of steps and of items', () => {
  const { run: after } = applyEvents({ run, items: new Map() }, [
    anEvent(1, 'step.started', { step_id: 'a' }),
    anEvent(1, 'step.cached', { step_id: 'a', attempt: 1, data: { run_id: 'run_0', saved_usd: 0.25 } }),
    anEvent(1, 'step.succeeded', { step_id: 'a', data: { cost_usd: 0 } }),
    anEvent(1, 'step.started', { step_id: 'b', data: { items: 2 } }),
    ...[1, 2].flatMap((item) => [
      anEvent(2, 'step.started', { step_id: 'b', item }),
      anEvent(2, 'step.cached', { step_id: 'b', item }),
      anEvent(2, 'step.succeeded', { step_id: 'b', item }),
    ]),
  ]);
  expect(after.steps).toMatchObject([
    { state: 'succeeded', attempts: 1, cached: 1, cost_usd: 0 },
    { items: { succeeded: 2 }, cached: 2 },
  ]);
});

test('in pieces the log gives the same as at once', () => {
  const whole = applyEvents(beginningOf(run), log);
  const inPieces = log.reduce((moment, event) => applyEvents(moment, [event]), beginningOf(run));
  expect(inPieces.run).toEqual(whole.run);
});

test('any moment of a run is shown as it was then', () => {
  const { run: end } = applyEvents({ run, items: new Map() }, log);
  const then = momentOf(end, log, second(3));
  expect(then).toMatchObject({ state: 'running', cost_usd: 0, finished_at: null });
  expect(then.steps.map(({ state }) => state)).toEqual(['running', 'pending']);
  expect(momentOf(end, log, second(9)).cost_usd).toBe(0.25);
});

test('a row that turns to failed has its error at once, without another request', () => {
  const { steps: _, links: __, output: ___, ...head } = run;
  const row = { ...head, state: 'running' as const, step_counts: { running: 1 } };
  const error = { code: 'step_failed', message: 'step b: none is left' };
  const frame = { pipeline: 'reel', awaiting: [], cost_usd: 0.25, reserved_usd: 0, steps: { failed: 1 } };
  const failed = { ...frame, state: 'failed' as const, error };
  expect(applyRunFrame(row, { ...failed, run_id: 'run_1' })).toMatchObject({
    state: 'failed',
    error,
    step_counts: { failed: 1 },
  });
  expect(applyRunFrame(row, { ...failed, run_id: 'run_2' })).toBe(row);
});

describe('events that came while an answer was read', () => {
  const answer = applyEvents({ run, items: new Map() }, log.slice(0, 3)).run;

  test('are in the run, although the answer was read before them', () => {
    const missed = log.slice(3, 5);
    const { steps } = applyMissed(answer, missed);
    expect(steps.map(({ state }) => state)).toEqual(['succeeded', 'waiting']);
    expect(steps[0]?.cost_usd).toBe(0.25);
  });

  test('change no step whose end the answer has', () => {
    const later = applyEvents({ run, items: new Map() }, log.slice(0, 5)).run;
    expect(applyMissed(later, log.slice(1, 5))).toEqual(later);
  });

  test('count no item twice', () => {
    const opened = applyEvents({ run, items: new Map() }, [
      anEvent(1, 'step.started', { step_id: 'a', data: { items: 3 } }),
      anEvent(2, 'step.started', { step_id: 'a', item: 1 }),
    ]);
    const same = [
      anEvent(1, 'step.started', { step_id: 'a', data: { items: 3 } }),
      anEvent(2, 'step.started', { step_id: 'a', item: 1 }),
    ];
    expect(applyMissed(opened.run, same).steps[0]?.items).toEqual({ pending: 2, running: 1 });
  });

  test('end a wide run whose answers are always older than its events', () => {
    const ids = Array.from({ length: 2_000 }, (_, index) => `s${index}`);
    const wide: Run = { ...run, state: 'running', steps: ids.map(aStep) };
    const events = ids.flatMap((step_id) => [
      anEvent(1, 'step.started', { step_id }),
      anEvent(2, 'step.succeeded', { step_id, data: { cost_usd: 0 } }),
    ]);
    const half = applyEvents({ run: wide, items: new Map() }, events.slice(0, 2_000)).run;
    const shown = applyEvents(
      { run: applyMissed(half, events.slice(1_500, 3_000)), items: new Map() },
      events.slice(3_000),
    ).run;
    expect(shown.steps.filter(({ state }) => state !== 'succeeded')).toEqual([]);
  });
});

test.each<[number, number | null]>([
  [0, 0.05],
  [2, 0.05],
  [4, 0.1],
  [9, null],
])('after %i s a moment has the ceiling of then: %s', (at, ceiling) => {
  const raised = [
    ...log,
    anEvent(3, 'run.budget_raised', { data: { from: 0.05, to: 0.1 } }),
    anEvent(8, 'run.budget_raised', { data: { from: 0.1, to: null } }),
  ].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
  expect(momentOf({ ...run, budget_ceiling_usd: null }, raised, second(at)).budget_ceiling_usd).toBe(ceiling);
});
