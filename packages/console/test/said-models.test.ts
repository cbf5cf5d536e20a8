/** The words for calls that were stopped, of answers that come later, of rounds, and of scores and long names. */
import type { Attempt, RunStep } from '@capstan/core/contracts/run-step';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeFilters } from '../src/calls/calls-path.ts';
import { formatScore } from '../src/decision/lanes-model.ts';
import { describeItems } from '../src/graph/node-model.ts';
import { findCritical } from '../src/pages/run/critical.ts';
import { describeDelivery, toneOfAttempt } from '../src/pages/run/drawer/attempts-model.ts';
import { describeLater, nextRoundAt } from '../src/pages/run/model.ts';
import { toPieces } from '../src/shared/name-pieces.ts';
import { toTimeBars } from '../src/timeline/bars.ts';
import type { StepGhost } from '../src/timeline/ghost-model.ts';
import { remainderOf } from '../src/timeline/ghost-model.ts';
import { describeRemainder } from '../src/timeline/ghost-words.ts';
import { type TimelineCall, toRows } from '../src/timeline/timeline-model.ts';

const now = Date.parse('2026-01-01T00:10:00Z');
const at = (second: number): string => new Date(now + second * 1_000).toISOString();

function aCall(rest: Partial<TimelineCall>): TimelineCall {
  return {
    step_id: 'agents',
    item: 0,
    attempt_id: 'att_1',
    revision: 0,
    level: null,
    endpoint: 'http://a',
    state: 'lost',
    ready_at: at(-9),
    started_at: at(-9),
    finished_at: at(-4),
    expected_ms: null,
    expected_usd: null,
    reserved_usd: 0,
    cost_usd: 0,
    certainty: null,
    error: 'run_cancelled',
    ...rest,
  };
}

function aStep(rest: Partial<RunStep>): RunStep {
  const moments = { started_at: at(-9), finished_at: null };
  return { id: 'agents', state: 'running', attempts: 1, revision: 0, cost_usd: 0, ...moments, ...rest };
}

const options = {
  open: new Set<string>(),
  all: new Set<string>(),
  now,
  ghosts: new Map<string, StepGhost>(),
};
const scale = { at: (moment: number) => moment, folds: [] } as never;

test.each<[Partial<RunStep>, readonly string[]]>([
  [{ error: { code: 'enough', message: '' } }, ['fast', 'answer']],
  [{ error: { code: 'run_cancelled', message: '' } }, ['deep', 'answer']],
])('the critical path leads through no step that was called off: %j', (ended, path) => {
  const steps = [
    aStep({ id: 'fast', state: 'succeeded', started_at: at(-9), finished_at: at(-5) }),
    aStep({ id: 'deep', state: 'cancelled', started_at: at(-9), finished_at: at(-2), ...ended }),
    aStep({ id: 'answer', state: 'succeeded', started_at: at(-2), finished_at: at(-1) }),
  ];
  const edges = ['fast', 'deep'].map((from) => ({ from, to: 'answer' }));
  expect(findCritical(steps, edges, now)).toEqual(path);
});

describe('the timeline', () => {
  test.each([
    [[0], null],
    [[1, 2, 3], { isOpen: false, items: 3, failed: 0, cancelled: 3 }],
  ])('shows stopped calls of the items %j as stopped, and as no failures', (items, fold) => {
    const calls = items.map((item) => aCall({ item, attempt_id: `att_${item}` }));
    const [row] = toRows(calls, { ...options, steps: [aStep({})] });
    expect(row?.fold).toEqual(fold);
    const bars = toTimeBars(row as NonNullable<typeof row>, { scale, now });
    expect(new Set(bars.map(({ kind, tone }) => `${kind} ${tone}`))).toEqual(new Set(['cancelled quiet']));
    expect(bars[0]?.title).toContain('stopped');
  });

  test.each<[Partial<RunStep>, boolean]>([
    [{ max_rounds: 3, items: { succeeded: 1 } }, true],
    [{ items: { succeeded: 1 } }, false],
  ])('knows whether the parts of the step %j are rounds: %s', (step, isRound) => {
    const calls = [aCall({ item: 1, error: null, state: 'settled' })];
    const rows = toRows(calls, { ...options, open: new Set(['agents']), steps: [aStep(step)] });
    expect(rows.map((row) => row.isRound)).toEqual([isRound, isRound]);
  });

  test.each([
    ['enough', 'called off before it began'],
    ['not_enough', 'called off before it began'],
    ['run_cancelled', 'cancelled before it began'],
  ])('shows why a step never began: %s', (code, note) => {
    const step = aStep({ state: 'cancelled', started_at: null, error: { code, message: 'why' } });
    expect(toRows([], { ...options, steps: [step] })[0]?.note).toBe(note);
  });

  test.each<[readonly StepGhost['awaits'][], string]>([
    [[undefined], 'a review'],
    [['callback'], 'a later answer'],
    [['budget', 'budget'], 'budget'],
    [['callback', undefined], 'several waits'],
  ])('shows what the finish depends on: %j', (waits, words) => {
    const ghosts = waits.map((awaits, index): [string, StepGhost] => [
      String(index),
      {
        step_id: String(index),
        from: now - 5,
        to: now - 1,
        expected_usd: 0,
        hasBegun: true,
        isSure: true,
        isOfOneItem: false,
        isIdle: false,
        isOpenEnded: true,
        ...(awaits === undefined ? {} : { awaits }),
      },
    ]);
    expect(describeRemainder(remainderOf(new Map(ghosts), now), now)).toBe(
      `No further steps planned; the finish depends on ${words}`,
    );
  });
});

test.each([
  [{ succeeded: 2, cancelled: 3 }, '2 of 5 done, 3 cancelled'],
  [{ failed: 2, cancelled: 1 }, '2 failed, 0 of 3 done, 1 cancelled'],
  [{ succeeded: 1, skipped: 1 }, '2 of 2 done'],
])('items %j are counted with those that were cancelled', (items, text) => {
  expect(describeItems(items)).toBe(text);
});

function anAttempt(rest: Partial<Attempt>): Attempt {
  return {
    attempt_id: 'att_1',
    endpoint: 'http://gpu',
    state: 'dispatched',
    ambiguity: null,
    started_at: at(0),
    duration_ms: null,
    cost_usd: 0,
    certainty: null,
    decision: null,
    ...rest,
  };
}

test('an accepted call, and one that was stopped, are neither open nor lost', () => {
  expect(describeDelivery(anAttempt({}))).toBe('under way');
  expect(describeDelivery(anAttempt({}), true)).toBe('accepted; the answer comes later');
  const stopped = anAttempt({ state: 'lost', error: { code: 'run_cancelled', message: '' } });
  expect([describeDelivery(stopped), toneOfAttempt(stopped)]).toEqual(['stopped before its end', 'quiet']);
  expect(describeLater({ attempts: [anAttempt({})] }, 90_000, now)).toContain(
    'http://gpu has accepted the call',
  );
  expect(describeLater({ attempts: [] }, 90_000, now)).not.toContain('until');
});

test.each<[readonly (string | null)[], string | undefined, string | null]>([
  [[at(0), at(5), null], '30m', at(1_805)],
  [[at(5), at(0)], '10s', at(15)],
  [[at(5)], undefined, null],
  [[null], '10s', null],
])('after rounds that ended at %j, with the pause %s, the next one begins at %s', (ends, pause, next) => {
  const rows = ends.map((finished_at) => ({ finished_at }));
  expect(nextRoundAt(rows, pause)).toBe(next);
});

test.each([
  [0.0333333, '0.0333'],
  [0, '0'],
  [1234.5, '1,230'],
  [0.000066, '0.000066'],
])('a score of %f has no currency: %s', (score, text) => {
  expect(formatScore(score)).toBe(text);
});

test('a name breaks after its separators, and nothing of it is lost', () => {
  expect(toPieces('openai/gpt-4o-mini')).toEqual(['openai/', 'gpt-', '4o-', 'mini']);
  expect(toPieces('segments.get')).toEqual(['segments.', 'get']);
  expect(toPieces('127.0.0.1:8101')).toEqual(['127.', '0.', '0.', '1:', '8101']);
  fc.assert(
    fc.property(fc.string(), (name) => {
      const pieces = toPieces(name);
      expect(pieces.join('')).toBe(name);
      for (const piece of pieces) expect(piece.replace(/[./:@_-]+$/, '').length).toBeLessThanOrEqual(16);
    }),
  );
});

test.each([
  [{}, 'Filters'],
  [{ user: undefined, model: 'gpt' }, 'Filters, 1 set'],
  [{ since: '2026-01-01', outcome: 'failed', direct: 'true' } as const, 'Filters, 3 set'],
])('the folded filters %j are named: %s', (search, text) => {
  expect(describeFilters(search)).toBe(text);
});
