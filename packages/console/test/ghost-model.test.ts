import type { PlannedStepView } from '@capstan/core/contracts/plan';
import type { RunStep } from '@capstan/core/contracts/run-step';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countProcessorMs } from '../../../test/support/processor-time.ts';
import { toneOfCall, toTimeBars } from '../src/timeline/bars.ts';
import { createOutlook, expectSteps, remainderOf } from '../src/timeline/ghost-model.ts';
import { describeGhost, describeRemainder } from '../src/timeline/ghost-words.ts';
import { toMoneyBars } from '../src/timeline/money-bars.ts';
import { toPicture } from '../src/timeline/picture.ts';
import type { TimelineCall } from '../src/timeline/timeline-model.ts';

const now = Date.parse('2026-01-01T00:10:00Z');
const secondMs = 1_000;

function planned(id: string, seconds: number, rest: Partial<PlannedStepView> = {}): PlannedStepView {
  const usd = seconds / 1_000;
  return {
    id,
    capability: 'cut',
    happens: 'yes',
    chosen: null,
    reason: '',
    candidates: [],
    cost_usd: { min: usd, expected: usd, worst: usd },
    duration_ms: seconds * secondMs,
    ...rest,
  };
}

function step(id: string, state: RunStep['state'], beganAgo: number | null = null): RunStep {
  const isOver = state === 'succeeded' || state === 'failed';
  const started_at = beganAgo === null ? null : new Date(now - beganAgo * secondMs).toISOString();
  const finished_at = isOver ? new Date(now - secondMs).toISOString() : null;
  return { id, capability: 'cut', state, attempts: 1, revision: 0, cost_usd: 0, started_at, finished_at };
}

function edge(from: string, to: string) {
  return { from, to };
}

/** `a → b → d`, `a → c → d` */
const diamond = [edge('a', 'b'), edge('a', 'c'), edge('b', 'd'), edge('c', 'd')];
const plan = [planned('a', 5), planned('b', 10), planned('c', 30), planned('d', 1)];

function seconds(ghosts: ReturnType<typeof expectSteps>): Record<string, [number, number]> {
  const since = (at: number): number => (at - now) / secondMs;
  return Object.fromEntries(
    [...ghosts].map(([id, { from, to }]): [string, [number, number]] => [id, [since(from), since(to)]]),
  );
}

describe('what is to come', () => {
  const outlook = createOutlook({ steps: plan }, diamond);

  test('begins when the last of what it waits for is expected to end', () => {
    const steps = [
      step('a', 'succeeded', 6),
      step('b', 'running', 4),
      step('c', 'pending'),
      step('d', 'pending'),
    ];
    expect(seconds(expectSteps(outlook, steps, now))).toEqual({ b: [-4, 6], c: [0, 30], d: [30, 31] });
  });

  test('waits for a step that takes longer than planned until now, and no longer', () => {
    const steps = [
      step('a', 'succeeded', 99),
      step('b', 'running', 90),
      step('c', 'succeeded', 90),
      step('d', 'pending'),
    ];
    expect(seconds(expectSteps(outlook, steps, now))).toEqual({ b: [-90, -80], d: [0, 1] });
  });

  test('leaves out the steps that the plan leaves out, and expects their dependents without their time', () => {
    const left = createOutlook(
      { steps: [planned('a', 5, { happens: 'no' }), planned('b', 10, { happens: 'unknown' })] },
      [edge('a', 'b')],
    );
    const ghosts = expectSteps(left, [step('a', 'pending'), step('b', 'pending')], now);
    expect(seconds(ghosts)).toEqual({ b: [0, 10] });
    expect(ghosts.get('b')).toMatchObject({ isSure: false, hasBegun: false });
  });

  test('counts the money of planned steps, and the end of all open ones', () => {
    const steps = [
      step('a', 'succeeded', 6),
      step('b', 'running', 4),
      step('c', 'pending'),
      step('d', 'pending'),
    ];
    const remainder = remainderOf(expectSteps(outlook, steps, now), now);
    expect(remainder).toEqual({ steps: 2, usd: 0.031, until: now + 31 * secondMs, isOpenEnded: false });
    expect(describeRemainder(remainder, now)).toBe('2 steps planned, $0.031; estimated finish in 31 s');
    expect(describeRemainder({ steps: 0, usd: 0, until: now, isOpenEnded: false }, now)).toBeNull();
  });

  test('has no certain end while a person is waited for', () => {
    const steps = [
      step('a', 'in_review', 4),
      step('b', 'pending'),
      step('c', 'pending'),
      step('d', 'pending'),
    ];
    const remainder = remainderOf(expectSteps(outlook, steps, now), now);
    expect(describeRemainder(remainder, now)).toMatch(/; estimated finish in 32 s at the earliest$/);
    expect(describeRemainder({ ...remainder, until: now }, now)).toMatch(/; the finish depends on a review$/);
  });

  test('no step is expected before now, or before what it depends on', () => {
    const state = fc.constantFrom<RunStep['state']>('pending', 'running', 'waiting', 'succeeded');
    const shape = fc.record({
      state,
      duration: fc.nat(100),
      ago: fc.nat(100),
      before: fc.array(fc.nat(30), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(shape, { minLength: 1, maxLength: 30 }), (shapes) => {
        const edges = shapes.flatMap(({ before }, at) =>
          before.filter((from) => from < at).map((from) => edge(`s${from}`, `s${at}`)),
        );
        const steps = shapes.map(({ state: now, ago }, at) =>
          step(`s${at}`, now, now === 'pending' ? null : ago),
        );
        const of = createOutlook(
          { steps: shapes.map(({ duration }, at) => planned(`s${at}`, duration)) },
          edges,
        );
        const ghosts = expectSteps(of, steps, now);
        for (const { from, to } of edges) {
          const after = ghosts.get(to);
          if (after === undefined || after.hasBegun) continue;
          expect(after.from).toBeGreaterThanOrEqual(Math.max(now, ghosts.get(from)?.to ?? now));
        }
        expect(ghosts.size).toBe(steps.filter((one) => one.state !== 'succeeded').length);
      }),
    );
  });

  test('10,000 steps are expected in a moment', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `s${index}`);
    const chain = many.slice(1).map((to, index) => edge(many[index - (index % 7)] ?? 's0', to));
    const of = createOutlook({ steps: many.map((id) => planned(id, 1)) }, chain);
    const steps = many.map((id) => step(id, 'pending'));
    const spentMs = countProcessorMs();
    expect(expectSteps(of, steps, now).size).toBe(10_000);
    expect(spentMs()).toBeLessThan(1_500);
  });
});

test('a ghost describes in words when, for how long and for how much', () => {
  const pause = planned('d', 0, { capability: undefined, review: 'May it?' });
  const items = planned('c', 30, { items: null, happens: 'unknown' });
  const of = createOutlook({ steps: [planned('a', 20), planned('b', 10), items, pause] }, [
    edge('b', 'c'),
    edge('c', 'd'),
  ]);
  const ghosts = expectSteps(of, [step('a', 'running', 4), step('b', 'pending')], now);
  expect([...ghosts.values()].map((ghost) => describeGhost(ghost, now))).toEqual([
    'planned for 20 s, $0.02',
    'next, for 10 s, $0.01',
    'perhaps in 10 s, for 30 s, $0.03 for each item',
    'in 40 s, until a person decides',
  ]);
});

function call(step_id: string, rest: Partial<TimelineCall>): TimelineCall {
  return {
    step_id,
    item: null,
    attempt_id: `att_${step_id}`,
    revision: 0,
    level: null,
    endpoint: 'http://x',
    state: 'settled',
    ready_at: null,
    started_at: new Date(now - 10 * secondMs).toISOString(),
    finished_at: new Date(now - 5 * secondMs).toISOString(),
    expected_ms: 3_000,
    expected_usd: 0.001,
    reserved_usd: 0.01,
    cost_usd: 0.002,
    certainty: 'exact',
    error: null,
    ...rest,
  };
}

test('a call that failed is red although it was answered and charged', () => {
  expect(toneOfCall(call('a', { error: 'output_invalid' }))).toBe('failed');
  expect(toneOfCall(call('a', {}))).toBe('done');
});

describe('the picture of an open run', () => {
  const none: ReadonlySet<string> = new Set();
  const steps = [
    step('a', 'succeeded', 10),
    step('b', 'running', 5),
    { ...step('c', 'running', 5), capability: undefined, pipeline: 'reel@1' },
    step('d', 'pending'),
  ];
  const calls = [
    call('a', {}),
    call('b', {
      state: 'dispatched',
      started_at: new Date(now - 5 * secondMs).toISOString(),
      finished_at: null,
      expected_ms: 10_000,
      cost_usd: 0,
    }),
  ];
  const outlook = createOutlook({ steps: plan }, diamond);
  const options = { steps, open: none, all: none, now };
  const { rows, scale } = toPicture(calls, { ...options, outlook });

  test('has a row for each step that has begun, and then for those to come', () => {
    expect(rows.map(({ step_id, ghost }) => [step_id, ghost?.hasBegun ?? null])).toEqual([
      ['a', null],
      ['b', null],
      ['c', true],
      ['d', false],
    ]);
    expect(scale.at(now - 10 * secondMs)).toBe(0);
    expect(scale.at(now + 26 * secondMs)).toBeCloseTo(1);
  });

  test('an ended step keeps its bar, with its expectation behind it', () => {
    const kinds = rows.map((row) => toTimeBars(row, { scale, now }).map(({ kind }) => kind));
    expect(kinds).toEqual([
      ['expected', 'called'],
      ['expected', 'called'],
      ['expected', 'called'],
      ['planned'],
    ]);
    const [ghost, bar] = toTimeBars(rows[1] as (typeof rows)[number], { scale, now });
    expect(ghost?.width).toBeCloseTo((bar?.width ?? 0) * 2);
  });

  test('by money a step to come has the length of what it is expected to cost', () => {
    const last = rows.at(-1) as (typeof rows)[number];
    expect(toMoneyBars(last, 0.004, now)).toMatchObject([{ kind: 'planned', width: 0.25, left: 0 }]);
  });

  test('without a plan it has what happened, and nothing after now', () => {
    const past = toPicture(calls, { ...options, outlook: null });
    expect(past.rows.map(({ step_id, ghost }) => [step_id, ghost])).toEqual([
      ['a', null],
      ['b', null],
      ['c', null],
    ]);
    expect(past.scale.at(now)).toBeCloseTo(1);
    expect(past.remainder).toBeNull();
  });

  test('a long pause is folded, before and after now', () => {
    const week = 7 * 86_400;
    const pause = { capability: undefined, wait: '7d' };
    const of = createOutlook({ steps: [planned('w', week, pause), planned('d', 1)] }, [edge('w', 'd')]);
    const waiting = [{ ...step('w', 'waiting', 86_400), ...pause }, step('d', 'pending')];
    const { scale: folded } = toPicture([], { ...options, steps: waiting, outlook: of });
    expect(folded.folds.length).toBe(2);
    expect(folded.at(now + (week - 86_400) * secondMs)).toBeLessThan(0.1);
  });
});
