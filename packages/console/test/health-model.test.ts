/** Health at a glance: marks, shares, medians, the next start, and the order of trouble. */
import { describe, expect, test } from 'vitest';
import {
  callsOfCapability,
  describeMarks,
  describeMedian,
  describeShare,
  type InstanceHealth,
  inOrderOfHealth,
  isIll,
  marksOfCalls,
  marksOfRuns,
  nextStartOf,
  type PipelineHealth,
} from '../src/health/health-model.ts';

type LastRun = PipelineHealth['last'][number];

function at(minute: number): string {
  return new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
}

function aRun(minute: number, state: LastRun['state'], failed_items?: number): LastRun {
  const items = failed_items === undefined ? {} : { failed_items };
  return { run_id: `run_${minute}`, state, created_at: at(minute), ...items };
}

/** @param last newest first */
function aPipeline(
  pipeline: string,
  last: readonly LastRun[],
  sums: Partial<PipelineHealth> = {},
): PipelineHealth {
  return {
    pipeline,
    last: [...last],
    ended: last.length,
    succeeded: last.length,
    p50_ms: 1,
    p50_usd: 0,
    ...sums,
  };
}

test('marks go from the oldest to the newest, and a failure has a sign beside its colour', () => {
  const marks = marksOfRuns({
    last: [aRun(4, 'running'), aRun(3, 'failed'), aRun(2, 'succeeded', 2), aRun(1, 'succeeded')],
  });
  expect(marks.map(({ runId, tone, sign }) => [runId, tone, sign])).toEqual([
    ['run_1', 'done', ''],
    ['run_2', 'waiting', '!'],
    ['run_3', 'failed', '×'],
    ['run_4', 'running', ''],
  ]);
  expect(marks[1]?.title).toMatch(/: succeeded, 2 items failed$/);
  expect(describeMarks(marks)).toMatch(/^1 failed, 3 others; newest, .*: running$/);
  expect(describeMarks([])).toBe('none');
});

test('a failed call names its error', () => {
  const marks = marksOfCalls([
    { at: at(2), succeeded: false, error: 'timeout' },
    { at: at(2), succeeded: false },
    { at: at(1), succeeded: true },
  ]);
  expect(marks.map(({ title }) => title.replace(/^.*: /, ''))).toEqual(['succeeded', 'failed', 'timeout']);
  expect(new Set(marks.map(({ key }) => key)).size).toBe(3);
});

test.each([
  [{ ended: 10, succeeded: 9 }, '9 of 10 calls'],
  [{ ended: 5, succeeded: 0 }, '0 of 5 calls'],
  [{ ended: 4, succeeded: 4 }, '4 of 4 calls, too few calls'],
  [{ ended: 1, succeeded: 1 }, '1 of 1 call, too few calls'],
  [{ ended: 0, succeeded: 0 }, 'no calls'],
])('the share of %j is: %s', (sums, words) => {
  expect(describeShare(sums, 'call')).toBe(words);
});

test.each([
  [{ p50_ms: 1_200, p50_usd: 0.0021 }, '1.2 s · $0.0021'],
  [{ p50_ms: 40, p50_usd: 0 }, '40 ms · $0'],
  [{ p50_ms: null, p50_usd: null }, ''],
])('the medians of %j are: "%s"', (sums, words) => {
  expect(describeMedian(sums)).toBe(words);
});

describe('trouble comes first', () => {
  const well = aPipeline('well', [aRun(9, 'succeeded')]);
  const broken = aPipeline('broken', [aRun(3, 'running'), aRun(2, 'failed'), aRun(1, 'succeeded')]);
  const flaky = aPipeline('flaky', [aRun(5, 'succeeded')], { ended: 6, succeeded: 2 });
  const mended = aPipeline('mended', [aRun(8, 'succeeded'), aRun(7, 'failed')]);
  const stopped = aPipeline('stopped', [aRun(6, 'cancelled'), aRun(2, 'failed')]);

  test('a pipeline whose newest result is a failure, or that mostly fails, is ill', () => {
    expect([well, broken, flaky, mended, stopped].map(isIll)).toEqual([false, true, true, false, false]);
  });

  test('then the pipelines that ran last', () => {
    const names = inOrderOfHealth([stopped, well, mended, broken, flaky]).map(({ pipeline }) => pipeline);
    expect(names).toEqual(['flaky', 'broken', 'well', 'mended', 'stopped']);
  });
});

test('the next start is the earliest of all schedules of the pipeline', () => {
  const schedules = [
    { pipeline: 'a', next_at: [at(30), at(40)] },
    { pipeline: 'b', next_at: [at(1)] },
    { pipeline: 'a', next_at: [at(20)] },
    { pipeline: 'c', next_at: [] },
  ];
  expect(['a', 'b', 'c', 'd'].map((name) => nextStartOf(schedules, name))).toEqual([
    at(20),
    at(1),
    null,
    null,
  ]);
});

test('the calls of a capability are those of all its instances, the newest first', () => {
  const instance = (name: string, ...minutes: number[]): InstanceHealth => ({
    name,
    endpoint: `http://${minutes.join('-')}`,
    last: minutes.map((minute) => ({ at: at(minute), succeeded: true })),
    ended: minutes.length,
    succeeded: minutes.length,
    p50_ms: 1,
    p50_usd: 0,
  });
  const items = [instance('cut', 5, 2), instance('cut', 4, 3), instance('mix', 9)];
  expect(callsOfCapability(items, 'cut', 3).map((one) => one.at)).toEqual([at(5), at(4), at(3)]);
});
