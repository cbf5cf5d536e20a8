import { describe, expect, test } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import type { PipelineDefinition } from '../../src/contracts/pipeline.ts';
import type { LocalRun, World } from '../../src/mock-run/local-run.ts';
import { createMockFleet } from '../../src/mock-run/mock-fleet.ts';
import type { Mocks } from '../../src/mock-run/mocks.ts';
import { createMockEvents } from '../../src/mock-run/outside/mock-events.ts';
import { createMockReviewer } from '../../src/mock-run/outside/mock-reviewer.ts';
import { runLocally } from '../../src/mock-run/run-locally.ts';
import { startRun } from '../../src/mock-run/start-run.ts';
import { createVirtualTime } from '../../src/mock-run/virtual-time.ts';

const minuteMs = 60_000;

function gpu(slots: number, delay = '60s'): Mocks {
  return { capabilities: { gpu: { max_concurrency: slots, duration: delay, replies: [{ delay }] } } };
}

function renders(items: number, settings: object = {}): PipelineDefinition {
  return {
    pipeline: 'renders',
    version: '1',
    steps: [
      {
        id: 'render',
        capability: 'gpu',
        for_each: { items: Array.from({ length: items }, (_, at) => at) },
        input: { n: '{{ item }}' },
        ...settings,
      },
    ],
  };
}

const single: PipelineDefinition = {
  pipeline: 'single',
  version: '1',
  steps: [{ id: 'one', capability: 'gpu' }],
};

/** Runs of one fleet, each submitted at its minute. */
async function runTogether(
  mocks: Mocks,
  orders: readonly (readonly [minute: number, definition: PipelineDefinition])[],
) {
  const time = createVirtualTime(0);
  const faults: unknown[] = [];
  const world: World = {
    time,
    fleet: createMockFleet(mocks.capabilities, time),
    reviewer: createMockReviewer(mocks, time),
    outside: createMockEvents(mocks, time),
    seed: 0,
    pipelines: [],
    onFault: (error) => faults.push(error),
    historyPressure: () => 'none',
    startRun,
    runs: 0,
  };
  const runs: { run: LocalRun; minutes: number | null }[] = [];
  for (const [minute, definition] of orders) {
    time.at(minute * minuteMs, () => {
      const begun = { minutes: null as number | null };
      const run = startRun(world, {
        definition,
        job: {},
        depth: 0,
        above: null,
        priority: definition.priority ?? 'standard',
        ceilingUsd: null,
        onRest: () => undefined,
        onEnd: () => {
          begun.minutes = (time.now() - minute * minuteMs) / minuteMs;
        },
      });
      runs.push(Object.assign(begun, { run }));
    });
  }
  await time.pass(
    () => faults.length > 0 || (runs.length === orders.length && runs.every(({ run }) => run.ended)),
  );
  expect(faults).toEqual([]);
  return runs.map(({ run, minutes }) => ({ outcome: run.ended?.outcome, minutes, run }));
}

describe('waiting for a slot counts against no timeout of the step', () => {
  test.each<[number, number]>([
    [100, 1],
    [100, 2],
    [1_000, 10],
    ...(isLong
      ? ([
          [10_000, 1],
          [10_000, 2],
          [10_000, 10],
        ] satisfies [number, number][])
      : []),
  ])('%d renders of a minute on %d slots all succeed, each called once', async (items, slots) => {
    const { outcome, calls, duration_ms } = await runLocally(renders(items), {}, gpu(slots));
    expect({ outcome, calls, minutes: duration_ms / minuteMs }).toEqual({
      outcome: 'succeeded',
      calls: { gpu: items },
      minutes: items / slots,
    });
  });

  test('renders with timeouts that one call hardly fits, or with fewer items at once, succeed too', async () => {
    for (const settings of [
      { timeout: '61s', total_timeout: '61s' },
      { for_each: { items: Array.from({ length: 60 }, (_, at) => at), max_parallel: 7 } },
    ]) {
      const { outcome, calls } = await runLocally(renders(60, settings), {}, gpu(2));
      expect({ outcome, calls }).toEqual({ outcome: 'succeeded', calls: { gpu: 60 } });
    }
  });

  test('queue_timeout bounds it, and the error reports how long, behind how many, and where', async () => {
    const items = { items: [0, 1, 2, 3, 4], tolerate: 5 };
    const { outcome, steps, calls } = await runLocally(
      renders(5, { queue_timeout: '90s', for_each: items }),
      {},
      gpu(1),
    );
    const failed = steps.filter(({ state }) => state === 'failed');
    expect({ outcome, failed: failed.map(({ item }) => item), calls }).toEqual({
      outcome: 'succeeded',
      failed: [3, 4, 5],
      calls: { gpu: 2 },
    });
    expect(failed[0]?.error).toEqual({
      code: 'queue_timeout',
      message:
        'waited 1 min 30 s for a free slot of gpu, behind 0 other calls, on mock://gpu/1; queue_timeout is 90s',
      details: { waited_ms: 90_000, ahead: 0, instances: ['mock://gpu/1'] },
    });
  });
});

/** Its input needs a number; the steps give it texts, which level 0 corrects. */
function strictGpu(slots: number): Mocks {
  const input = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  return {
    capabilities: {
      gpu: { max_concurrency: slots, duration: '60s', input, replies: [{ delay: '60s' }] },
    },
  };
}

function corrections(items: number, settings: object = {}): PipelineDefinition {
  const texts = Array.from({ length: items }, (_, at) => String(at));
  return renders(items, { for_each: { items: texts }, escalate: { repair: 'apply' }, ...settings });
}

describe('a call with a corrected input waits as any other', () => {
  test.each<[number, number]>([
    [60, 1],
    [200, 3],
  ])('%d corrected renders of a minute on %d slots outlast their ladders', async (items, slots) => {
    const { outcome, calls } = await runLocally(corrections(items), {}, strictGpu(slots));
    expect({ outcome, calls }).toEqual({ outcome: 'succeeded', calls: { gpu: items } });
  });

  test('a corrected call has its turn: two equal runs share a slot evenly, whichever of them is corrected', async () => {
    const [first, second] = await runTogether(strictGpu(1), [
      [0, corrections(20)],
      [5.5, renders(10)],
    ]);
    expect([first?.outcome, second?.outcome]).toEqual(['succeeded', 'succeeded']);
    expect(second?.minutes).toBeGreaterThanOrEqual(19);
    expect(second?.minutes).toBeLessThanOrEqual(21.5);
  });

  test('queue_timeout bounds it, and no model is asked', async () => {
    const settings = {
      queue_timeout: '90s',
      for_each: { items: ['0', '1', '2', '3', '4'], tolerate: 5 },
    };
    const { outcome, steps, calls } = await runLocally(corrections(5, settings), {}, strictGpu(1));
    const failed = steps.filter(({ state }) => state === 'failed');
    expect({ outcome, calls, codes: failed.map(({ error }) => error?.code) }).toEqual({
      outcome: 'succeeded',
      calls: { gpu: 2 },
      codes: ['queue_timeout', 'queue_timeout', 'queue_timeout'],
    });
  });

  test('a pause holds it, and stops its queue_timeout', async () => {
    const mocks: Mocks = {
      ...strictGpu(1),
      control: [
        { at: '30s', action: 'pause' },
        { at: '5h', action: 'resume' },
      ],
    };
    const { outcome, calls, events } = await runLocally(corrections(2, { queue_timeout: '1h' }), {}, mocks);
    expect({ outcome, calls }).toEqual({ outcome: 'succeeded', calls: { gpu: 2 } });
    const routed = events.filter(({ type }) => type === 'step.routed').map(({ at_ms }) => at_ms);
    expect(routed).toEqual([0, 5 * 60 * minuteMs]);
  });
});

describe('runs take turns in the line', () => {
  test.each<[number, number]>([
    [100, 1],
    [1_000, 2],
    ...(isLong ? ([[10_000, 10]] satisfies [number, number][]) : []),
  ])('a run of one, in the middle of %d renders on %d slots, ends within two turns', async (items, slots) => {
    const middle = Math.floor(items / slots / 2) + 0.5;
    const [large, small] = await runTogether(gpu(slots), [
      [0, renders(items)],
      [middle, single],
    ]);
    expect([large?.outcome, small?.outcome]).toEqual(['succeeded', 'succeeded']);
    expect(small?.minutes).toBeLessThanOrEqual(2.5);
  });

  test('two equal runs share one slot evenly, in any order of arrival', async () => {
    const [first, second] = await runTogether(gpu(1), [
      [0, renders(20)],
      [5.5, renders(10)],
    ]);
    expect([first?.outcome, second?.outcome]).toEqual(['succeeded', 'succeeded']);
    expect(second?.minutes).toBeGreaterThanOrEqual(19);
    expect(second?.minutes).toBeLessThanOrEqual(21.5);
  });

  test('a higher priority goes first', async () => {
    const [, standard, interactive] = await runTogether(gpu(1), [
      [0, { ...renders(10), priority: 'batch' }],
      [2.1, { ...renders(3), priority: 'standard' }],
      [2.2, { ...renders(3), priority: 'interactive' }],
    ]);
    expect(interactive?.minutes).toBeCloseTo(3.8, 5);
    expect(standard?.minutes).toBeCloseTo(6.9, 5);
  });

  test('a call that was given up holds no place', async () => {
    const time: Mocks = { ...gpu(1), control: [{ at: '90s', action: 'cancel' }] };
    const { outcome, calls, steps } = await runLocally(renders(5), {}, time);
    expect({ outcome, calls }).toEqual({ outcome: 'cancelled', calls: { gpu: 2 } });
    expect(steps.filter(({ item, state }) => item > 0 && state === 'cancelled')).toHaveLength(4);
  });
});

test('no call begins that its learnt duration cannot end in the time left', async () => {
  const mocks: Mocks = {
    capabilities: {
      gpu: {
        duration: '40s',
        replies: [{ error: { status: 500, message: 'no' }, delay: '40s', times: 1 }, {}],
      },
    },
  };
  const definition: PipelineDefinition = {
    pipeline: 'p',
    version: '1',
    steps: [{ id: 'a', capability: 'gpu', total_timeout: '60s' }],
  };
  const { outcome, error, calls } = await runLocally(definition, {}, mocks);
  expect({ outcome, calls }).toEqual({ outcome: 'failed', calls: { gpu: 1 } });
  expect(error?.message).toMatch(/whose calls take longer than the time left; 1\d s are left/);
});

test('a pause holds the next attempt, and takes no time from the step', async () => {
  const mocks: Mocks = {
    capabilities: { gpu: { replies: [{ error: { status: 500, message: 'no' }, times: 1 }, {}] } },
    control: [
      { at: '1s', action: 'pause' },
      { at: '2h', action: 'resume' },
    ],
  };
  const definition: PipelineDefinition = {
    pipeline: 'p',
    version: '1',
    steps: [{ id: 'a', capability: 'gpu', total_timeout: '60s', retry: { max: 1, initial: '5s' } }],
  };
  const { outcome, events, duration_ms } = await runLocally(definition, {}, mocks);
  expect({ outcome, duration_ms }).toEqual({ outcome: 'succeeded', duration_ms: 7_200_000 });
  expect(events.filter(({ type }) => type === 'step.routed').map(({ at_ms }) => at_ms)).toEqual([
    0, 7_200_000,
  ]);
});

describe('capabilities on one host', () => {
  const host = { name: 'gpu-1', slots: 1 };
  const isBusy = { delay: '60s' };
  const mocks = (takes = 1, slots = 1): Mocks => ({
    capabilities: {
      gpu: { host: { ...host, slots }, takes, duration: '60s', replies: [isBusy] },
      voice: { host: { ...host, slots }, duration: '60s', replies: [isBusy] },
    },
  });
  const both = (items: number): PipelineDefinition => ({
    pipeline: 'both',
    version: '1',
    steps: ['gpu', 'voice'].map((capability) => ({
      id: capability,
      capability,
      for_each: { items: Array.from({ length: items }, (_, at) => at) },
    })),
  });

  test.each([
    [1, 1, 20],
    [1, 2, 10],
    [2, 2, 15],
  ])(
    'whose calls take %d and 1 of %d slots take as long as the host bears them',
    async (takes, slots, minutes) => {
      const { outcome, calls, duration_ms, events } = await runLocally(both(10), {}, mocks(takes, slots));
      expect({ outcome, calls, minutes: duration_ms / minuteMs }).toEqual({
        outcome: 'succeeded',
        calls: { gpu: 10, voice: 10 },
        minutes,
      });
      const weight = { gpu: takes, voice: 1 } as Readonly<Record<string, number>>;
      const held = new Map<number, number>();
      for (const { type, at_ms, step_id = '' } of events)
        if (type === 'step.routed') held.set(at_ms, (held.get(at_ms) ?? 0) + (weight[step_id] ?? 0));
      expect(Math.max(...held.values())).toBeLessThanOrEqual(slots);
    },
  );

  test('whose calls take more are not passed for ever by smaller ones', async () => {
    const large = mocks(2, 2);
    const { events } = await runLocally(both(10), {}, large);
    const routed = events.filter(({ type }) => type === 'step.routed');
    const firstOf = (id: string): number => routed.findIndex(({ step_id }) => step_id === id);
    const last = routed.map(({ step_id }) => step_id).lastIndexOf('voice');
    const between = routed.slice(firstOf('voice'), last).filter(({ step_id }) => step_id === 'gpu');
    expect(between.length).toBeGreaterThan(2);
  });

  test('take turns', async () => {
    const { events } = await runLocally(both(4), {}, mocks());
    const order = events.filter(({ type }) => type === 'step.routed').map(({ step_id }) => step_id);
    expect(order).toEqual(['gpu', 'gpu', 'voice', 'gpu', 'voice', 'gpu', 'voice', 'voice']);
  });
});
