/** What the page of a run works out of what it knows: its timeline, its items, a rerun, the budget that it needs. */

import type { PlannedStepView } from '@capstan/core/contracts/plan';
import type { Run } from '@capstan/core/contracts/run';
import type { Awaiting, RunStep, StepDetail } from '@capstan/core/contracts/run-step';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyEvents } from '../src/api/apply-event.ts';
import { isShortened } from '../src/json/json-model.ts';
import { toClimb } from '../src/ladder/climb-model.ts';
import { compareSteps, describeChange, whyNotTheSame } from '../src/pages/compare/model.ts';
import { moveInGrid, toCells } from '../src/pages/run/drawer/item-grid-model.ts';
import { causeOf, describeItemFailures, describeRetry } from '../src/pages/run/model.ts';
import {
  describeInstances,
  describePrice,
  faultOfTerms,
  needOfRun,
  priceOfRerun,
  type RunTerms,
  sameTerms,
  toRerunRequest,
  toTerms,
} from '../src/pages/run/rerun-model.ts';
import { toBulkAction } from '../src/pages/runs/history-model.ts';
import { formatDuration } from '../src/shared/format.ts';
import { toTimeBars } from '../src/timeline/bars.ts';
import { toPicture } from '../src/timeline/picture.ts';
import {
  createTimeScale,
  labelsOf,
  momentAt,
  partBetween,
  ticksOf,
  zoomBy,
  zoomTo,
} from '../src/timeline/scale.ts';
import { sortByFailure, type TimelineCall } from '../src/timeline/timeline-model.ts';

const began = Date.parse('2026-01-01T00:00:00Z');
const none: ReadonlySet<string> = new Set();

function at(seconds: number): string {
  return new Date(began + seconds * 1_000).toISOString();
}

function aStep(id: string, state: RunStep['state'], rest: Partial<RunStep> = {}): RunStep {
  return {
    id,
    capability: 'cut',
    state,
    attempts: 1,
    revision: 0,
    cost_usd: 0,
    started_at: at(0),
    finished_at: null,
    ...rest,
  };
}

function aCall(step_id: string, from: number, to: number, rest: Partial<TimelineCall> = {}): TimelineCall {
  return {
    step_id,
    item: null,
    attempt_id: `att_${step_id}_${from}`,
    revision: 0,
    level: null,
    endpoint: 'http://x',
    state: 'settled',
    ready_at: at(from),
    started_at: at(from),
    finished_at: at(to),
    expected_ms: null,
    expected_usd: null,
    reserved_usd: 0,
    cost_usd: 0,
    certainty: 'exact',
    error: null,
    ...rest,
  };
}

interface Drawn {
  readonly steps: readonly RunStep[];
  readonly calls: readonly TimelineCall[];
  readonly now: number;
  readonly open?: ReadonlySet<string>;
}

function draw({ steps, calls, now, open = none }: Drawn) {
  return toPicture(calls, { steps, outlook: null, open, all: none, now, isLive: true });
}

describe('the timeline of a run', () => {
  test('reaches until now while items of a for_each wait and nothing is called', () => {
    const now = began + 740_000;
    const items = { succeeded: 2, waiting: 4 };
    const { rows, scale } = draw({
      steps: [aStep('chapter', 'running', { items })],
      calls: [aCall('chapter', 0, 4, { item: 1 }), aCall('chapter', 4, 8, { item: 2 })],
      now,
    });
    expect(scale.last).toBe(now);
    expect(scale.at(began + 8_000)).toBeLessThan(1);
    const bars = toTimeBars(rows[0] as (typeof rows)[number], { scale, now });
    const { kind, left = 0, width = 0 } = bars.at(-1) ?? {};
    expect([kind, Math.round((left + width) * 100)]).toEqual(['waiting', 100]);
  });

  test('shows a pause and a question as waits, and a call as a call', () => {
    const now = began + 10_000;
    const pause = aStep('pause', 'waiting', { capability: undefined, wait: '1h' });
    const { rows, scale } = draw({
      steps: [pause, aStep('cut', 'succeeded')],
      calls: [aCall('cut', 0, 4)],
      now,
    });
    const kinds = rows.map((row) => [
      row.step_id,
      ...toTimeBars(row, { scale, now }).map(({ kind }) => kind),
    ]);
    expect(kinds).toEqual(
      expect.arrayContaining([
        ['pause', 'waiting'],
        ['cut', 'called'],
      ]),
    );
  });

  test('distinguishes a wait for another attempt from a wait for an instance', () => {
    const calls = [
      aCall('cut', 1, 2, { ready_at: at(0), error: 'step_failed' }),
      aCall('cut', 5, 6, { ready_at: at(2) }),
    ];
    const now = began + 6_000;
    const { rows, scale } = draw({ steps: [aStep('cut', 'succeeded', { finished_at: at(6) })], calls, now });
    const bars = toTimeBars(rows[0] as (typeof rows)[number], { scale, now });
    expect(bars.map(({ kind, tone }) => [kind, tone])).toEqual([
      ['waiting', 'quiet'],
      ['called', 'failed'],
      ['retry', 'quiet'],
      ['called', 'done'],
    ]);
  });

  test('has an empty row for each step that was skipped or reused', () => {
    const steps = [aStep('cut', 'succeeded'), aStep('mail', 'skipped', { started_at: null })];
    const { rows } = draw({ steps, calls: [aCall('cut', 0, 4)], now: began + 4_000 });
    expect(rows.map(({ step_id, note }) => [step_id, note])).toEqual([
      ['cut', undefined],
      ['mail', 'skipped'],
    ]);
  });

  test('shows failed items first, then those with the longest calls, and how many there are', () => {
    const calls = Array.from({ length: 20 }, (_, index) =>
      aCall('cut', index, index + 1 + (index === 5 ? 3 : 0), {
        ready_at: at(0),
        item: index + 1,
        ...(index === 16 ? { error: 'step_failed' } : {}),
      }),
    );
    const { rows } = draw({
      steps: [aStep('cut', 'succeeded', { items: { succeeded: 19, failed: 1 } })],
      calls,
      now: began + 20_000,
      open: new Set(['cut']),
    });
    expect(rows.slice(1, 3).map(({ item }) => item)).toEqual([17, 6]);
    expect(rows.at(-1)?.more).toEqual({ shown: 12, all: 20 });
  });

  test('has steps with failed calls in front when asked for', () => {
    const calls = [aCall('a', 0, 1), aCall('b', 1, 2, { error: 'step_failed' })];
    const steps = [aStep('a', 'succeeded'), aStep('b', 'failed')];
    const { rows } = draw({ steps, calls, now: began + 2_000 });
    expect(sortByFailure(rows).map(({ step_id }) => step_id)).toEqual(['b', 'a']);
  });

  test('has round ticks since its begin, and one where time continues behind a fold', () => {
    const plain = ticksOf(createTimeScale([{ from: began, to: began + 60_000 }]));
    expect(plain.map((tick) => tick - began)).toEqual([0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    const folded = createTimeScale([
      { from: began, to: began + 10_000 },
      { from: began + 3_600_000, to: began + 3_610_000 },
    ]);
    const ticks = ticksOf(folded).map((tick) => tick - began);
    expect(ticks).toEqual([0, 5_000, 10_000, 3_605_000, 3_610_000]);
  });
});

describe('the time of a run', () => {
  const spans = fc.array(
    fc.record({
      from: fc.integer({ min: 0, max: 10_000_000 }),
      length: fc.integer({ min: 0, max: 900_000 }),
    }),
    { minLength: 1, maxLength: 8 },
  );
  const scaleOf = (some: readonly { readonly from: number; readonly length: number }[]) =>
    createTimeScale(some.map(({ from, length }) => ({ from: began + from, to: began + from + length })));
  const textOf = (moment: number): string => `+${formatDuration(moment - began)}`;

  test('has labels of which none covers another, at any width and zoom', () => {
    fc.assert(
      fc.property(
        spans,
        fc.integer({ min: 60, max: 1_600 }),
        fc.double({ min: 1, max: 50, noNaN: true }),
        (some, width, factor) => {
          const base = scaleOf(some);
          const labels = labelsOf(zoomTo(base, zoomBy(base, null, { factor })), width, textOf);
          const boxes = labels.map(({ text, place, isBefore }) => {
            const px = text.length * 6;
            return isBefore ? [place * width - px, place * width] : [place * width, place * width + px];
          });
          boxes.forEach(([from = 0], index) => {
            expect(from).toBeGreaterThanOrEqual(boxes[index - 1]?.[1] ?? 0);
          });
        },
      ),
    );
  });

  test.each([180, 320, 900])('has at least its start and no more labels than %i px hold', (width) => {
    const labels = labelsOf(createTimeScale([{ from: began, to: began + 3_600_000 }]), width, textOf);
    expect(labels.length).toBeGreaterThanOrEqual(1);
    expect(labels.length).toBeLessThanOrEqual(width / 40);
  });

  test('keeps the moment under the pointer while it zooms in and out', () => {
    fc.assert(
      fc.property(
        spans,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(1.25, 2, 4),
        (some, around, factor) => {
          const base = scaleOf(some);
          fc.pre(base.last - base.first > 1_000);
          const before = momentAt(base, around);
          const shown = zoomTo(base, zoomBy(base, null, { factor, around }));
          expect(shown.at(before)).toBeCloseTo(around, 1);
        },
      ),
    );
  });

  test('shows the part that was dragged over, in either direction, and all of it again', () => {
    const base = createTimeScale([{ from: began, to: began + 100_000 }]);
    const part = partBetween(base, 0.6, 0.2);
    expect(part).toEqual({ from: began + 20_000, to: began + 60_000 });
    const shown = zoomTo(base, part);
    const places = [20_000, 40_000, 80_000].map((ms) => Number(shown.at(began + ms).toFixed(6)));
    expect(places).toEqual([0, 0.5, 1.5]);
    expect(partBetween(shown, 0.25, 0.5)).toEqual({ from: began + 30_000, to: began + 40_000 });
    expect(partBetween(base, 0.5, 0.505)).toBeNull();
    expect(zoomBy(base, part, { factor: 0.25 })).toBeNull();
    expect(zoomTo(base, null)).toBe(base);
  });
});

describe('the row of a step with items, closed', () => {
  const calls = [
    aCall('cut', 0, 4, { item: 1, error: 'step_failed' }),
    aCall('cut', 0, 9, { item: 2 }),
    aCall('cut', 1, 9, { item: 3, error: 'timeout' }),
    aCall('cut', 9, 12, { item: 3 }),
  ];
  const open = { open: none, all: none, steps: [], outlook: null, now: began + 12_000 };

  test('counts the items that failed in the end', () => {
    const { rows } = toPicture(calls, open);
    expect(rows[0]?.fold).toEqual({ isOpen: false, items: 3, failed: 1, cancelled: 0 });
  });

  test('draws failures above all others, and each bar names its item, times and cost', () => {
    const { rows, scale } = toPicture(calls, open);
    const bars = rows.flatMap((row) => toTimeBars(row, { scale, now: open.now }));
    expect(bars.map(({ kind }) => kind)).toEqual(['called', 'called', 'failed', 'failed']);
    expect(bars[2]?.title).toMatch(/^item 1 at http:\/\/x: step_failed\n.*00\.000.* to .*04\.000.*, 4\.0 s$/);
  });
});

test('a child run that waits for budget is no call', () => {
  const child = aStep('covers', 'waiting', { pipeline: 'covers@1', awaiting: 'run' });
  const options = { open: none, all: none, outlook: null, now: began + 9_000, isLive: true, steps: [child] };
  const kindsOf = (awaiting: Awaiting[]) => {
    const { rows, scale } = toPicture([], { ...options, awaiting });
    return rows.flatMap((row) => toTimeBars(row, { scale, now: options.now })).map(({ kind }) => kind);
  };
  expect(kindsOf(['run'])).toEqual(['called']);
  expect(kindsOf(['budget', 'run'])).toEqual(['waiting']);
  expect(kindsOf(['review', 'run'])).toEqual(['waiting']);
});

describe('the items of a step', () => {
  test('have a cell each, also those that have not begun', () => {
    const rows = [
      { item: 1, state: 'succeeded' as const },
      { item: 2, state: 'failed' as const },
    ];
    const { cells, failed, all } = toCells({ succeeded: 1, failed: 1, pending: 2 }, rows);
    expect(cells.map(({ item, state, isFailed }) => [item, state, isFailed])).toEqual([
      [1, 'succeeded', false],
      [2, 'failed', true],
      [3, 'pending', false],
      [4, 'pending', false],
    ]);
    expect([failed, all]).toEqual([1, 4]);
  });

  test.each([
    ['ArrowRight', 0, 1],
    ['ArrowLeft', 0, 0],
    ['ArrowDown', 1, 6],
    ['ArrowUp', 6, 1],
    ['End', 0, 9],
    ['Home', 7, 0],
    ['ArrowDown', 8, 9],
    ['a', 3, null],
  ])('%s leads from cell %d to %s', (key, from, to) =>
    expect(moveInGrid(key, from, { count: 10, columns: 5 })).toBe(to),
  );
});

function aPlan(id: string, expected: number, rest: Partial<PlannedStepView> = {}): PlannedStepView {
  return {
    id,
    happens: 'yes',
    chosen: null,
    reason: '',
    candidates: [],
    cost_usd: { min: 0, expected, worst: 10 },
    duration_ms: 0,
    ...rest,
  };
}

describe('a rerun', () => {
  test('names only what is not as before', () => {
    const run = { version: '1.0' };
    const as = { from: 'cut', version: '1.0', job: null, terms: sameTerms };
    expect(toRerunRequest(run, { ...as, choice: 'all' })).toEqual({});
    expect(toRerunRequest(run, { ...as, choice: 'failed' })).toEqual({ only_failed: true });
    const other = { choice: 'from' as const, version: '1.1', job: { n: 1 } };
    expect(toRerunRequest(run, { ...as, ...other })).toEqual({
      from: ['cut'],
      version: '1.1',
      job: { n: 1 },
    });
  });

  test.each<[Partial<RunTerms>, object, string | null]>([
    [{}, {}, null],
    [{ budget: 'none' }, { budget_ceiling_usd: null }, null],
    [
      { budget: 'other', usd: '0.5', priority: 'batch' },
      { budget_ceiling_usd: 0.5, priority: 'batch' },
      null,
    ],
    [{ budget: 'other', usd: '0' }, { budget_ceiling_usd: 0 }, null],
    [{ budget: 'other', usd: ' ' }, { budget_ceiling_usd: 0 }, 'Give the budget in USD.'],
    [{ budget: 'other', usd: '-1' }, { budget_ceiling_usd: -1 }, 'Give the budget in USD.'],
    [{ usd: 'x', priority: 'interactive' }, { priority: 'interactive' }, null],
  ])('has the terms %j', (changed, request, fault) => {
    const terms = { ...sameTerms, ...changed };
    expect([toTerms(terms), faultOfTerms(terms)]).toEqual([request, fault]);
  });

  const costing = (expected: number, isOpen = false) => ({ expected, isOpen });

  test('offers instances in words, with the price of each by its plan', () => {
    const prices = { batch: costing(0.004), standard: costing(0.03) };
    expect(describeInstances('batch', prices)).toBe(
      'the cheapest, however long it takes: about $0.004 (batch)',
    );
    expect(describeInstances('interactive', prices)).toBe('the fastest, also dear ones (interactive)');
  });

  test.each([
    ['standard', ', for about $0.03'],
    ['batch', ', for about $0.004 instead of $0.03 with the instances of before'],
    ['interactive', ''],
  ] as const)('with the instances of %s has the price now and before', (now, text) => {
    const prices = { batch: costing(0.004), standard: costing(0.03) };
    expect(describePrice(prices, 'standard', now)).toBe(text);
  });

  test('has a price without a former one, an equal one, and one of open items', () => {
    const open = { batch: costing(0.01, true), standard: costing(0.01) };
    expect(describePrice({ batch: costing(0.01) }, 'standard', 'batch')).toBe(', for about $0.01');
    expect(describePrice(open, 'standard', 'batch')).toBe(
      ', for about $0.01 and what items cost whose number is not known yet',
    );
  });

  test('costs what the steps that run again are expected to cost', () => {
    const planned = [aPlan('a', 0.1), aPlan('b', 0.2, { items: null }), aPlan('c', 0.4, { happens: 'no' })];
    const again = (...ids: string[]) => ids.map((id) => ({ id, reason: '' }));
    expect(priceOfRerun(planned, again('a', 'b', 'c'))).toEqual({ expected: 0.3, isOpen: true });
    expect(priceOfRerun(planned, again('a'))).toEqual({ expected: 0.1, isOpen: false });
    const items = { all: 200, kept: 193, repeated: '1-7' };
    expect(priceOfRerun([aPlan('a', 2, { items: 200 })], [{ id: 'a', reason: '', items }])).toEqual({
      expected: 0.07,
      isOpen: false,
    });
  });
});

test('a run needs what it has spent, and the price of every call that is left', () => {
  const items = { succeeded: 2, waiting: 4 };
  const steps = [
    aStep('chapter', 'running', { items, cost_usd: 0.008 }),
    aStep('cover', 'pending'),
    aStep('done', 'succeeded', { cost_usd: 9 }),
  ];
  const planned = [aPlan('chapter', 0.018, { items: 6 }), aPlan('cover', 0.1), aPlan('done', 9)];
  expect(needOfRun({ cost_usd: 0.008, steps }, planned)).toEqual({
    usd: 0.124,
    spentUsd: 0.008,
    left: [
      { id: 'chapter', calls: 4, eachUsd: 0.004 },
      { id: 'cover', calls: 1, eachUsd: 0.1 },
    ],
  });
  expect(needOfRun({ cost_usd: 1, steps: [aStep('free', 'pending')] }, [aPlan('free', 0)])).toBeNull();
});

test('a step whose result was reused went to no other instance', () => {
  const run = (step: Partial<RunStep>, seconds: number) =>
    ({
      pipeline: 'reel',
      version: '1',
      job_id: 'job_1',
      started_at: at(0),
      finished_at: at(seconds),
      steps: [aStep('cut', 'succeeded', step)],
    }) as unknown as Run;
  const left = run({ endpoint: 'http://x', cost_usd: 0.1 }, 7.2);
  const right = run({ state: 'reused', attempts: 0, reused_from: 'run_1' }, 3.7);
  const steps = compareSteps(left, right);
  expect(steps.map(({ differs }) => differs)).toEqual([['reused']]);
  expect(whyNotTheSame(left, right, { steps, jobs: null })).toBe(
    '1 difference: 1 step reused an earlier result. The first took 7.2 s, the second 3.7 s.',
  );
});

test.each([
  [0.01, 0.03, '+$0.02'],
  [0.03, 0.01, '−$0.02'],
  [0, 0, ''],
])('a cost of %d and one of %d differ by %j', (left, right, words) => {
  expect(describeChange(left, right)).toBe(words);
});

describe('an action on several runs', () => {
  test.each([
    [
      {
        action: 'runs.repeated',
        data: {
          filter: { label: 'batch=7' },
          request: { priority: 'batch' },
          runs: ['run_1'],
          new_runs: ['run_2'],
          refused: ['run_3'],
        },
      },
      {
        title: 'Repeated 1 run, 1 refused',
        filter: 'label=batch=7',
        request: 'priority batch',
        runs: ['run_2'],
      },
    ],
    [
      {
        action: 'runs.cancelled',
        data: {
          filter: {},
          request: { mode: 'graceful' },
          runs: ['run_1', 'run_2'],
          new_runs: [],
          refused: [],
        },
      },
      { title: 'Cancelled 2 runs', filter: '', request: 'mode graceful', runs: ['run_1', 'run_2'] },
    ],
    [
      { action: 'runs.other', data: {} },
      { title: 'runs.other 0 runs', filter: '', request: '', runs: [] },
    ],
  ])('%j', (entry, shown) => expect(toBulkAction(entry)).toEqual(shown));
});

describe('a ladder', () => {
  const failure = (level: number, label: string, error: string, second: number) => ({
    level,
    label,
    error,
    attempted_at: began / 1_000 + second,
  });
  const advice = (level: number, label: string, instructions: string) => ({
    from_level: level,
    label,
    instructions,
    reasoning: '',
  });
  const move = (kind: string, level: number, outcome: string, second: number, more: object = {}) => ({
    kind,
    level,
    outcome,
    at: at(second),
    began_at: at(second - 1),
    cost_usd: 0,
    revisions: [],
    ...more,
  });
  const history = [
    failure(0, 'static template', 'rate must be integer', 0),
    failure(1, 'fast model', 'rate 44103 is odd', 605),
    failure(2, 'capable model', 'no object', 611),
  ];
  const escalation = {
    escalation_level: 5,
    escalation_history: history,
    escalation_advice: [advice(1, 'fast model', 'try another'), advice(2, 'capable model', 'round down')],
    moves: [
      move('executed', 0, 'no_template', 1, { began_at: undefined }),
      move('advised', 1, 'advised', 603, { cost_usd: 0.001 }),
      move('executed', 1, 'failed', 606, { cost_usd: 0.002, revisions: [1] }),
      move('advised', 2, 'advised', 609, { cost_usd: 0.01 }),
      move('executed', 2, 'failed', 613),
    ],
    leader: { escalation_id: 'esc_0', run_id: 'run_0' },
  };
  const revisions = [{ revision: 1, input: { rate: 44_103 }, source: 'fast model', created_at: at(605) }];
  const step = { state: 'in_review', input: { rate: 'x' }, revisions, escalation } as unknown as StepDetail;

  test('is shown in the order of time, from the cause to the person, with its wait', () => {
    expect(toClimb(step).map(({ level, title, text }) => [level, title, text])).toEqual([
      [0, 'The call of the step was refused', 'rate must be integer'],
      [0, 'No rule or skill fits', ''],
      [0, 'Waited for the same failure of another run', ''],
      [1, 'fast model advises', 'try another'],
      [1, 'fast model corrected the input, and the step refused it', 'rate 44103 is odd'],
      [2, 'capable model advises', 'round down'],
      [2, 'capable model gave no usable correction', 'no object'],
      [5, 'Waiting for a person', 'The step continues when the review is decided.'],
    ]);
  });

  test('shows the question, the price and the time of each rung, and what a correction changed', () => {
    const climb = toClimb(step);
    expect(climb.map(({ question }) => question)).toEqual([
      ...[
        '',
        '',
        '',
        'rate must be integer',
        'rate must be integer',
        'rate 44103 is odd',
        'rate 44103 is odd',
        '',
      ],
    ]);
    expect(climb.map(({ costUsd }) => costUsd)).toEqual([null, 0, null, 0.001, 0.002, 0.01, 0, null]);
    expect(climb[2]).toMatchObject({ tookMs: 601_000, runId: 'run_0' });
    expect(climb[4]?.change).toEqual({ before: { rate: 'x' }, after: { rate: 44_103 } });
  });

  test('of a run whose log is deleted still has its cause', () => {
    const old = {
      ...step,
      state: 'failed',
      escalation: { ...escalation, moves: [] },
    } as unknown as StepDetail;
    expect(toClimb(old).map(({ title }) => title)).toEqual([
      'The call of the step was refused',
      'fast model failed',
      'capable model failed',
    ]);
  });

  test('has a cause, which is shown once', () => {
    expect(causeOf(step, 'ladder exhausted; last error: no object')).toBe('rate must be integer');
    expect(causeOf(step, 'input rejected: rate must be integer')).toBe('');
    expect(causeOf({}, 'x')).toBe('');
  });

  test.each([
    ['review:rev_1', 5, 'A person corrected the input'],
    ['skl_1', 0, 'The skill skl_1 corrected the input'],
    ['repair', 0, 'A rule corrected the input'],
  ])('names what corrected it: %s', (source, level, title) => {
    const moves = [move('executed', level, 'succeeded', 1, { revisions: [1] })];
    const ended = {
      ...step,
      state: 'succeeded',
      revisions: [{ ...revisions[0], source }],
      escalation: { ...escalation, escalation_history: history.slice(0, 1), escalation_advice: [], moves },
    } as unknown as StepDetail;
    expect(toClimb(ended).at(-1)?.title).toBe(title);
  });

  test('shows that it waits for another one', () => {
    const waiting = {
      ...step,
      state: 'retrying',
      finished_at: null,
      escalation: { ...escalation, escalation_advice: [], moves: escalation.moves.slice(0, 1) },
    } as unknown as StepDetail;
    expect(toClimb(waiting).at(-1)).toMatchObject({ kind: 'waited', runId: 'run_0' });
  });
});

test('a ladder that waits for a review is on the rung of a person', () => {
  const escalation = {
    escalation_level: 5,
    escalation_history: [{ level: 0, label: 'static', attempted_at: began / 1_000, error: 'refused' }],
    escalation_advice: [],
    moves: [],
  };
  const climb = toClimb({ state: 'in_review', escalation } as unknown as StepDetail);
  expect(climb.map(({ kind, level }) => [kind, level])).toEqual([
    ['tried', 0],
    ['asked', 5],
  ]);
});

test('a budget that was raised is the new one at once', () => {
  const run = { run_id: 'run_1', state: 'running', budget_ceiling_usd: 1, steps: [] } as unknown as Run;
  const event = {
    seq: 1,
    run_id: 'run_1',
    type: 'run.budget_raised' as const,
    at: at(1),
    data: { from: 1, to: 2 },
  };
  const moment = applyEvents({ run, items: new Map() }, [event]);
  expect(moment.run.budget_ceiling_usd).toBe(2);
});

describe('a step that is retried', () => {
  const retry = { max: 3, initialMs: 60_000, factor: 2, maxDelayMs: 600_000 };
  const attempt = (code: string, second: number) =>
    ({
      started_at: at(second),
      duration_ms: 1_000,
      error: { code, message: '' },
    }) as StepDetail['attempts'][number];
  const failed = [attempt('capability_failed', 0), attempt('contact_lost', 100)];
  const say = (attempts: StepDetail['attempts'], seconds: number, revision = 0) =>
    describeRetry({ attempts, revision }, retry, began + seconds * 1_000);

  test('shows how many attempts are left, and when the next one starts', () => {
    expect(say(failed, 101)).toMatch(
      /^Attempt 2 failed; 2 of 4 attempts are left\. The next one starts automatically at about .*:41.*, in 2 min\.$/,
    );
    expect(say(failed, 999)).toMatch(/automatically at any moment\.$/);
  });

  test('counts only attempts that reached an instance', () => {
    expect(say([...failed, attempt('overloaded', 200)], 200)).toBe(
      'Attempt 3 failed; 2 of 4 attempts are left. The next one starts automatically within a minute.',
    );
    expect(say([attempt('connect_failed', 0)], 1)).toBe(
      'The next attempt starts automatically within a minute.',
    );
  });

  test('shows no count of attempts left after its input was corrected', () =>
    expect(say(failed, 999, 1)).toBe('Attempt 2 failed. The next one starts automatically at any moment.'));
});

test('failed items are named by their most frequent error', () => {
  const items = [1, 2, 3, 4, 5].map((item) => ({
    item,
    error: { code: 'input_rejected', message: item === 2 ? 'too long' : 'HTTP 422: bad rate\nline 2' },
  }));
  expect(describeItemFailures(items)).toBe(
    'Items 1, 3, 4 and 1 more: HTTP 422: bad rate (1 failed with other errors)',
  );
  expect(describeItemFailures(items.slice(1, 2))).toBe('Item 2: too long');
  expect(describeItemFailures([])).toBeNull();
});

test('a value of which the tree shows only a part is known as such', () => {
  expect(isShortened({ a: ['x'.repeat(401)] })).toBe(true);
  expect(isShortened(Array.from({ length: 51 }, () => 1))).toBe(true);
  expect(isShortened({ a: Array.from({ length: 50 }, () => 'x'.repeat(400)) })).toBe(false);
});
