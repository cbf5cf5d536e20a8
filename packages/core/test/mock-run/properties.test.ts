import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { type LocalResult, runLocally } from '../../src/mock-run/run-locally.ts';
import { anySteps, job, mocks, type RandomStep, toPipeline } from './any-pipeline.ts';
import { judgeSteps } from './reference-model.ts';

function run(
  steps: readonly RandomStep[],
  historyPressure?: () => 'none' | 'soft' | 'hard',
): Promise<LocalResult> {
  return runLocally(toPipeline(steps), job, mocks, historyPressure === undefined ? {} : { historyPressure });
}

function wholesOf({ steps }: LocalResult) {
  return steps.filter(({ item }) => item === 0);
}

type LocalEvent = LocalResult['events'][number];

function keyOf({ step_id, item = 0 }: LocalEvent): string {
  return `${step_id}/${item}`;
}

const ends: ReadonlySet<string> = new Set([
  'step.succeeded',
  'step.failed',
  'step.skipped',
  'step.cancelled',
]);

/** When each unit began and ended, as a place in the log. */
function spansOf(events: readonly LocalEvent[]) {
  const began = new Map<string, number>();
  const ended = new Map<string, number>();
  for (const event of events) {
    if (event.step_id === undefined) continue;
    const into = event.type === 'step.started' ? began : ends.has(event.type) ? ended : null;
    if (into === null) continue;
    if (into.has(keyOf(event))) throw new Error(`${keyOf(event)}: two times ${event.type}`);
    into.set(keyOf(event), event.seq);
  }
  return { began, ended };
}

/** The most items of the step that were running at one time. */
function mostAtOnce(events: readonly LocalEvent[], id: string): number {
  let [now, most] = [0, 0];
  for (const { type, step_id, item } of events) {
    if (step_id !== id || item === undefined) continue;
    if (type === 'step.started') now += 1;
    if (ends.has(type)) now -= 1;
    most = Math.max(most, now);
  }
  return most;
}

describe('a run that nothing stops', () => {
  it('ends every step by the rules, in any order of events', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps(300, { fatal: false }), async (steps) => {
        const result = await run(steps);
        expect(result.outcome).toBe('succeeded');
        expect(new Map(wholesOf(result).map(({ id, state }) => [id, state]))).toEqual(judgeSteps(steps));
      }),
      { numRuns: runs(10) },
    );
  });

  it('begins nothing twice, nothing before what it needs is done, and no more items at once than allowed', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps(120, { fatal: true }), async (steps) => {
        const { events } = await run(steps);
        const { began, ended } = spansOf(events);
        for (const { id, needs, does, max_parallel } of steps) {
          const start = began.get(`${id}/0`);
          if (start === undefined) continue;
          const tooEarly = needs.filter((need) => !((ended.get(`${need}/0`) ?? start) < start));
          expect({ id, tooEarly }).toEqual({ id, tooEarly: [] });
          if (Array.isArray(does)) expect(mostAtOnce(events, id)).toBeLessThanOrEqual(max_parallel ?? 200);
        }
      }),
      { numRuns: runs(8) },
    );
  });
});

describe('a run that a failure stops', () => {
  it('fails if and only if a step fails that may not; the others end by the rules, or are left out', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps(120, { fatal: true }), async (steps) => {
        const model = judgeSteps(steps);
        const isFatal = steps.some(({ id, continues }) => !continues && model.get(id) === 'failed');
        const result = await run(steps);
        expect(result.outcome).toBe(isFatal ? 'failed' : 'succeeded');
        for (const { id, state } of wholesOf(result)) {
          expect([model.get(id), ...(isFatal ? ['skipped', 'cancelled'] : [])]).toContain(state);
        }
      }),
      { numRuns: runs(12) },
    );
  });
});

/** What a caller sees in the end; when things happened may differ. */
function visible({ outcome, error, output, steps, calls }: LocalResult) {
  return {
    outcome,
    error,
    output,
    calls,
    steps: steps.map(({ id, item, state, output: own, error: why }) => ({ id, item, state, own, why })),
  };
}

describe('a run that is carried over', () => {
  it('comes out as one that is not, wherever it was cut', async () => {
    const anyRests = fc.infiniteStream(fc.constantFrom('none', 'none', 'soft', 'hard'));
    await fc.assert(
      fc.asyncProperty(anySteps(100, { fatal: false }), anyRests, async (steps, rests) => {
        const whole = await run(sequential(steps));
        const cut = await run(sequential(steps), () => rests.next().value as 'none' | 'soft' | 'hard');
        expect(visible(cut)).toEqual(visible(whole));
      }),
      { numRuns: runs(8) },
    );
  });
});

/** Which items of a step that fails are begun depends on time, unless they are begun one by one. */
function sequential(steps: readonly RandomStep[]): RandomStep[] {
  return steps.map((step) => ({ ...step, max_parallel: 1 }));
}

describe('a run done again', () => {
  it('is the same, event for event', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps(60, { fatal: true }), async (steps) => {
        expect(await run(steps)).toEqual(await run(steps));
      }),
      { numRuns: runs(4) },
    );
  });
});
