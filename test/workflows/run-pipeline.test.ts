/** The workflow on a real Temporal, with scripted activities: what the machine promises holds across histories too. */

import type { Awaiting } from '@capstan/core/contracts/run-step';
import type { PlannedStep, RunPlan } from '@capstan/core/run/plan';
import { runWorkflowId } from '@capstan/core/workflow-names';
import { reportMs } from '@capstan/core/workflow-payloads';
import { ApplicationFailure } from '@temporalio/common';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anyPlan, aPlan, planOf } from '../../packages/core/test/run/a-plan.ts';
import type { InlineEnd } from '../../src/activities/step-activities.ts';
import { isLong } from '../support/long.ts';
import {
  historyLengths,
  type ScriptedRun,
  type ScriptedRuns,
  startScriptedRuns,
  succeeded,
} from '../support/scripted-runs.ts';
import { showHistory } from '../support/shown-events.ts';
import { waitFor } from '../support/wait.ts';

let runs: ScriptedRuns;
beforeAll(async () => {
  runs = await startScriptedRuns();
});
afterAll(() => runs?.stop());

function given(plan: RunPlan, rules: Readonly<Record<string, Partial<PlannedStep>>> = {}): RunPlan {
  return {
    ...plan,
    steps: plan.steps.map((step) => ({ ...step, ...rules[step.id] })),
  };
}

function idsOf(calls: readonly { readonly step_id: string }[]): string[] {
  return calls.map(({ step_id }) => step_id);
}

/** What the Web UI shows as *Current Details*. */
async function readDetails({ handle }: ScriptedRun): Promise<string> {
  const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
  return metadata.currentDetails ?? '';
}

function waitsFor(awaiting: Awaiting, ms: number | null, ref?: object) {
  return {
    waiting: {
      awaiting,
      until: ms === null ? null : new Date(Date.now() + ms).toISOString(),
      ...(ref === undefined ? {} : { ref }),
    },
  };
}

describe('a long run', () => {
  test('moves on to new histories between two steps, each short, and no step happens twice', async () => {
    const chain = planOf(Array.from({ length: isLong ? 60 : 30 }, (_, at) => (at === 0 ? [] : [at - 1])));
    const run = await runs.start(given(chain), { execute: () => succeeded }, { history_events: 60 });
    expect(await run.ended()).toBe('succeeded');
    expect(idsOf(run.recorded.calls)).toEqual(chain.steps.map(({ id }) => id));
    const lengths = await historyLengths(runs.client, run.handle.workflowId);
    expect(lengths.length).toBeGreaterThan(2);
    expect(Math.max(...lengths)).toBeLessThan(120);
  });

  test.runIf(isLong)('moves on while items come without pause, after those that run have ended', async () => {
    const plan = given(aPlan(['a', 'b a']), { a: { decides: true, each: { max_parallel: 8 } } });
    const run = await runs.start(
      { ...plan, max_in_flight: 8 },
      { execute: () => succeeded, decide: () => ({ type: 'go', items: 150 }) },
      { history_events: 100 },
    );
    expect(await run.ended()).toBe('succeeded');
    const items = run.recorded.calls.filter(({ step_id }) => step_id === 'a').map(({ item }) => item);
    expect(items.toSorted((a, b) => (a ?? 0) - (b ?? 0))).toEqual(
      Array.from({ length: 150 }, (_, at) => at + 1),
    );
    expect(run.recorded.calls.at(-1)?.step_id).toBe('b');
    const lengths = await historyLengths(runs.client, run.handle.workflowId);
    expect(lengths.length).toBeGreaterThan(2);
    expect(Math.max(...lengths)).toBeLessThan(300);
  });

  test.runIf(isLong)('is not delayed by its waits, and receives their ends in its next history', async () => {
    const steps = [
      'asked',
      ...Array.from({ length: 40 }, (_, at) => `s${at}${at === 0 ? '' : ` s${at - 1}`}`),
    ];
    const run = await runs.start(
      given(aPlan([...steps, 'last asked'])),
      {
        execute: ({ step_id, resumed }) =>
          step_id === 'asked' && resumed === undefined
            ? waitsFor('review', null, { review_id: 'rev_1' })
            : succeeded,
      },
      { history_events: 60 },
    );
    await waitFor('the chain to end', () => run.recorded.calls.some(({ step_id }) => step_id === 's39'));
    const review = { review_id: 'rev_1', version: 2 };
    await run.handle.signal('reviewed', review);
    await run.handle.signal('reviewed', review);
    expect(await run.ended()).toBe('succeeded');
    expect(idsOf(run.recorded.calls.slice(-2))).toEqual(['asked', 'last']);
    expect((await historyLengths(runs.client, run.handle.workflowId)).length).toBeGreaterThan(2);
  });
});

test('a step of any name is shown, however long it is', async () => {
  const [step] = aPlan(['a']).steps as [PlannedStep];
  const run = await runs.start(
    {
      steps: [{ ...step, id: 'a'.repeat(64), capability: `${'p'.repeat(64)}@${'漢'.repeat(128)}` }],
      max_in_flight: 1,
    },
    { execute: () => succeeded },
  );
  expect(await run.ended()).toBe('succeeded');
  const [queued] = showHistory(await run.handle.fetchHistory()).filter(({ activity }) => activity);
  expect(queued?.summary).toMatch(/^a+ → p+@漢+…$/);
});

describe('a wait', () => {
  test('ends by its time, whichever was first to wait', async () => {
    let wake = async (): Promise<void> => undefined;
    const run = await runs.start(given(aPlan(['slow', 'fast', 'end slow fast'])), {
      execute: async ({ step_id, resumed }) => {
        if (resumed === undefined && step_id !== 'end') {
          return waitsFor('time', step_id === 'slow' ? 3_600_000 : 200);
        }
        if (step_id === 'fast') await wake();
        return succeeded;
      },
    });
    wake = () => run.handle.signal('woken', { step_id: 'slow', item: 0 });
    expect(await run.ended()).toBe('succeeded');
    expect(idsOf(run.recorded.calls.slice(2))).toEqual(['fast', 'slow', 'end']);
  });

  test('that is woken before the workflow knows of it continues at once', async () => {
    let wake: () => Promise<void> = async () => undefined;
    const run = await runs.start(given(aPlan(['a'])), {
      execute: async ({ resumed }) => {
        if (resumed !== undefined) return succeeded;
        await wake();
        return waitsFor('budget', null);
      },
    });
    wake = () => run.handle.signal('woken', { step_id: 'a', item: 0 });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls).toHaveLength(2);
  });

  test.each([
    ['budget', undefined, 'money'],
    ['review', { review_id: 'rev_1' }, 'a person (rev_1)'],
    ['capability', undefined, 'an instance'],
    ['run', { run_id: 'run_1' }, 'the run that it started (run_1)'],
  ] as const)(
    'for %s is shown in its timer, in the current details and afterwards',
    async (awaiting, ref, words) => {
      let details = '';
      const run = await runs.start(given(aPlan(['a'])), {
        execute: async ({ resumed }) => (resumed === undefined ? waitsFor(awaiting, 60_000, ref) : succeeded),
      });
      await waitFor('the wait to be shown', async () => {
        details = await readDetails(run);
        return details.includes('waiting');
      });
      expect(details).toContain(`◍ waiting, for ${words} until 20`);
      await run.handle.signal('woken', { step_id: 'a', item: 0 });
      expect(await run.ended()).toBe('succeeded');
      const shown = showHistory(await run.handle.fetchHistory());
      expect(shown.filter(({ type }) => type === 'TIMER_STARTED')).toEqual([
        { type: 'TIMER_STARTED', summary: `a waits for ${words}` },
      ]);
      const asked = shown.filter(({ type }) => type === 'ACTIVITY_TASK_SCHEDULED');
      expect(asked.map(({ summary }) => summary)).toEqual([
        'a → concat',
        `a → concat, after its wait for ${words}`,
      ]);
    },
  );

  test('may come again', async () => {
    const run = await runs.start(given(aPlan(['a'])), {
      execute: (_, times) => (times < 4 ? waitsFor('time', 50) : succeeded),
    });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls).toHaveLength(4);
  });

  test('is given up when the run is cancelled', async () => {
    const run = await runs.start(given(aPlan(['a', 'b a'])), { execute: () => waitsFor('budget', null) });
    await waitFor('the step to wait', () => run.recorded.calls.length === 1);
    await run.handle.cancel();
    expect(await run.ended()).toBe('cancelled');
    expect(run.recorded.changes).toMatchObject([{ step_id: 'a', item: 0, state: 'cancelled' }]);
  });
});

describe('a pause', () => {
  test('lets nothing begin until it is over; the highest version counts', async () => {
    const control = (version: number, paused: boolean) => ({ version, paused, budget_version: 0 });
    const run = await runs.start(
      given(aPlan(['a', 'b a'])),
      { execute: () => succeeded },
      { control: control(1, true) },
    );
    await run.handle.signal('control', control(3, true));
    await run.handle.signal('control', control(2, false));
    await waitFor('the signals to be taken', async () => {
      const { events } = await run.handle.fetchHistory();
      const isSignal = (events ?? []).map((event) => event.workflowExecutionSignaledEventAttributes != null);
      const after = (events ?? []).slice(isSignal.lastIndexOf(true));
      return (
        isSignal.includes(true) && after.some((event) => event.workflowTaskCompletedEventAttributes != null)
      );
    });
    expect(run.recorded.calls).toEqual([]);
    await run.handle.signal('control', control(4, false));
    expect(await run.ended()).toBe('succeeded');
    expect(idsOf(run.recorded.calls)).toEqual(['a', 'b']);
  });

  /** Names of the timers that the run has started so far. */
  const timersOf = async ({ handle }: ScriptedRun): Promise<number> => {
    const { events } = await handle.fetchHistory();
    return (events ?? []).filter((event) => event.timerStartedEventAttributes != null).length;
  };

  test('stops the time limit of the run, whose rest counts after the resume', async () => {
    const control = { version: 1, paused: true, budget_version: 0 };
    const run = await runs.start(
      given(aPlan(['a'])),
      { execute: () => waitsFor('review', null, { review_id: 'rev_1' }) },
      { control, timeout_ms: 300 },
    );
    await waitFor('its first task', async () => {
      const { events } = await run.handle.fetchHistory();
      return (events ?? []).some((event) => event.workflowTaskCompletedEventAttributes != null);
    });
    expect(await timersOf(run)).toBe(0);
    await run.handle.signal('control', { ...control, version: 2, paused: false });
    expect(await run.ended()).toBe('failed');
    expect(run.recorded.closing?.error).toMatchObject({ code: 'run_timeout' });
    expect(await timersOf(run)).toBe(1);
    await runs.replay(run);
  });

  test('holds a step before its next attempt, which has the time that it had left', async () => {
    const control = { version: 1, paused: true, budget_version: 0 };
    let holdRun: () => Promise<void> = async () => undefined;
    const run = await runs.start(given(aPlan(['a', 'b a'])), {
      execute: async ({ step_id, resumed }) => {
        if (step_id === 'b' || resumed !== undefined) return succeeded;
        await holdRun();
        return { waiting: { awaiting: 'retry', until: new Date().toISOString(), left_ms: 1_234 } };
      },
    });
    holdRun = () => run.handle.signal('control', control);
    await waitFor('its wait to be over', async () => {
      const { events } = await run.handle.fetchHistory();
      return (events ?? []).some((event) => event.timerFiredEventAttributes != null);
    });
    expect(idsOf(run.recorded.calls)).toEqual(['a']);
    await run.handle.signal('control', { ...control, version: 2, paused: false, paused_ms: 70 });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls.slice(1)).toMatchObject([
      { step_id: 'a', resumed: true, paused_ms: 70 },
      { step_id: 'b', paused_ms: 70 },
    ]);
    const { events } = await run.handle.fetchHistory();
    const times = (events ?? []).flatMap(
      ({ activityTaskScheduledEventAttributes: asked }) => asked?.scheduleToCloseTimeout ?? [],
    );
    const toMs = ({ seconds, nanos }: (typeof times)[number]) => Number(seconds) * 1_000 + (nanos ?? 0) / 1e6;
    expect(times.map(toMs)[1]).toBe(1_234 + reportMs);
    await runs.replay(run);
  });

  test('holds short steps that a batch has not begun', async () => {
    const control = { version: 1, paused: true, budget_version: 0 };
    let holdRun: () => Promise<void> = async () => undefined;
    const plan = given(aPlan(['a', 'b']), { a: { inline: true }, b: { inline: true } });
    const run = await runs.start(plan, {
      execute: () => succeeded,
      executeInline: async ({ units }) => {
        await holdRun();
        return { ends: units.map(({ step_id }) => (step_id === 'a' ? succeeded : 'left')), took_ms: 600 };
      },
    });
    holdRun = () => run.handle.signal('control', control);
    await waitFor('the step that is left to wait', async () => {
      const { events } = await run.handle.fetchHistory();
      return (events ?? []).filter((event) => event.timerFiredEventAttributes != null).length === 2;
    });
    expect([run.recorded.batches.length, run.recorded.calls]).toEqual([1, []]);
    await run.handle.signal('control', { ...control, version: 2, paused: false });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls).toMatchObject([{ step_id: 'b', resumed: true }]);
    await runs.replay(run);
  });
});

describe('what a local activity cannot do', () => {
  const hopeless = (): never => {
    throw ApplicationFailure.nonRetryable('no such column');
  };

  test('fails the steps that were to be decided', async () => {
    const plan = given(aPlan(['a']), { a: { decides: true } });
    const run = await runs.start(plan, { execute: () => succeeded, decide: hopeless });
    expect(await run.ended()).toBe('failed');
    expect(run.recorded.closing?.error?.message).toContain('no such column');
  });

  test('is left to the end of the run where it was to be recorded', async () => {
    const plan = given(aPlan(['a', 'b a']), { a: { decides: true } });
    const run = await runs.start(plan, {
      execute: () => succeeded,
      decide: () => ({ type: 'skip' }),
      record: async () => hopeless(),
    });
    expect(await run.ended()).toBe('succeeded');
  });
});

describe('inline steps', () => {
  const toReplay: ScriptedRun[] = [];
  const inline = (plan: RunPlan, which = (_id: string) => true): RunPlan => ({
    ...plan,
    steps: plan.steps.map((step) => (which(step.id) ? { ...step, inline: true } : step)),
  });
  const count = async (run: ScriptedRun) => {
    const { events } = await run.handle.fetchHistory();
    const all = events ?? [];
    return {
      queued: all.filter((event) => event.activityTaskScheduledEventAttributes != null).length,
      timers: all.filter((event) => event.timerStartedEventAttributes != null).length,
    };
  };
  const unitsOf = ({ recorded }: ScriptedRun): string[] =>
    recorded.batches.map(({ units }) =>
      units.map(({ step_id, item, after = [] }) => `${step_id}${item ?? ''}<${after.join()}`).join(' '),
    );

  test('that are ready together go together, with those that follow, without a queue', async () => {
    const run = await runs.start(inline(aPlan(['a', 'b a', 'c b', 'd b', 'e c d'])), {
      execute: () => succeeded,
    });
    expect(await run.ended()).toBe('succeeded');
    expect(unitsOf(run)).toEqual(['a< b<0 c<1 d<1 e<2,3']);
    expect(await count(run)).toEqual({ queued: 0, timers: 0 });
    toReplay.push(run);
  });

  test('are named in the history, each with its end', async () => {
    const run = await runs.start(inline(aPlan(['a', 'b a', 'c b'])), {
      execute: () => succeeded,
      executeInline: ({ units }) => ({
        ends: units.map(({ step_id }) => (step_id === 'c' ? 'again' : succeeded)),
        took_ms: 1,
      }),
    });
    expect(await run.ended()).toBe('succeeded');
    const shown = showHistory(await run.handle.fetchHistory());
    const [batch] = shown.filter(({ activity }) => activity === 'executeInline');
    expect(batch).toMatchObject({
      summary: '3 short steps: a, then b, c',
      result: { ends: { a: succeeded, b: succeeded, c: 'again' } },
    });
    toReplay.push(run);
  });

  test('are shown in the current details as queued ones are, with their costs', async () => {
    const plan = aPlan(['a', 'b a']);
    const done = { endpoint: 'http://one', cost_usd: 0.25, duration_ms: 7 };
    const executeInline = ({ units }: { readonly units: readonly object[] }) => ({
      ends: units.map(() => done),
      took_ms: 1,
    });
    const details = await Promise.all(
      [plan, inline(plan)].map(async (one) => {
        const extra = { dispatch_reasons: ['concat is as it is'] };
        const run = await runs.start(one, { execute: () => done, executeInline }, extra);
        expect(await run.ended()).toBe('succeeded');
        return readDetails(run);
      }),
    );
    expect(details[0]).toBe(
      [
        '[Run](http://run): succeeded',
        '',
        '| step | capability | state | instance | USD | took |',
        '|---|---|---|---|---|---|',
        '| a | concat | ✓ succeeded | http://one | 0.25 | 7 ms |',
        '| b | concat | ✓ succeeded | http://one | 0.25 | 7 ms |',
        '',
        '- concat is as it is',
        '',
        '\u00a0', // what the Web UI cuts off
      ].join('\n'),
    );
    expect(details[1]).toBe(details[0]?.replaceAll('✓ succeeded', '✓ succeeded, inline'));
  });

  test('beside one that has a queue have one too', async () => {
    const plan = inline(aPlan(['a', 'b', 'c a', 'd b c']), (id) => id !== 'b');
    const run = await runs.start(plan, { execute: () => succeeded });
    expect(await run.ended()).toBe('succeeded');
    expect(idsOf(run.recorded.calls).slice(0, 2).sort()).toEqual(['a', 'b']);
    expect(unitsOf(run).join(' ')).toMatch(/d</); // once nothing has a queue any more
    toReplay.push(run);
  });

  test('items go together, as many as may run in parallel', async () => {
    const plan = inline(aPlan(['each', 'end each']));
    const [each, end] = plan.steps as [PlannedStep, PlannedStep];
    const fanned = { ...each, decides: true as const, each: { max_parallel: 3 } };
    const run = await runs.start(
      { ...plan, steps: [fanned, end] },
      { execute: () => succeeded, decide: () => ({ type: 'go', items: 5 }) },
    );
    expect(await run.ended()).toBe('succeeded');
    expect(unitsOf(run)).toEqual(['each1< each2< each3<', 'each4< each5<', 'end<']);
    expect(await count(run)).toEqual({ queued: 0, timers: 0 });
    toReplay.push(run);
  });

  test('that have not begun go with the next batch; one that continues is awaited in the queue', async () => {
    let batches = 0;
    const run = await runs.start(inline(aPlan(['a', 'b', 'c a', 'd b'])), {
      execute: () => succeeded,
      executeInline: ({ units }) => {
        batches += 1;
        const ends = batches === 1 ? ['again', 'left', 'left', 'left'] : units.map(() => succeeded);
        return { ends: ends as InlineEnd[], took_ms: 250 };
      },
    });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls[0]).toMatchObject({ step_id: 'a', again: true });
    const begun = run.recorded.batches.slice(1).flatMap(({ units }) => units.map(({ step_id }) => step_id));
    expect([...begun, ...idsOf(run.recorded.calls)].sort()).toEqual(['a', 'b', 'c', 'd']);
    toReplay.push(run);
  });

  test('a follower that does not succeed at once is asked for in the queue, and those after it wait', async () => {
    const run = await runs.start(inline(aPlan(['a', 'b a', 'c b', 'd c'])), {
      execute: () => succeeded,
      executeInline: ({ units }) => ({
        ends: units.length > 1 ? [succeeded, succeeded, 'again', 'left'] : [succeeded],
        took_ms: 1,
      }),
    });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls).toMatchObject([{ step_id: 'c', again: true }]);
    expect(unitsOf(run)).toEqual(['a< b<0 c<1 d<2', 'd<']);
    toReplay.push(run);
  });

  test('of a batch that fails as a whole are asked for in the queue', async () => {
    const run = await runs.start(inline(aPlan(['a', 'b a'])), {
      execute: () => succeeded,
      executeInline: () => {
        throw new Error('out of memory');
      },
    });
    expect(await run.ended()).toBe('succeeded');
    expect(run.recorded.calls).toMatchObject([{ step_id: 'a', again: true }, { step_id: 'b' }]);
    toReplay.push(run);
  });

  test('listen for a moment after half a second at a stretch', async () => {
    const chain = inline(planOf(Array.from({ length: 6 }, (_, at) => (at === 0 ? [] : [at - 1]))));
    const run = await runs.start(chain, {
      execute: () => succeeded,
      executeInline: ({ units }) => ({
        ends: units.map((_, at) => (at === 0 ? succeeded : 'left')),
        took_ms: 300,
      }),
    });
    expect(await run.ended()).toBe('succeeded');
    expect(await count(run)).toEqual({ queued: 0, timers: 2 });
    toReplay.push(run);
  });

  test('whose wait is over go through the queue', async () => {
    const run = await runs.start(
      inline(aPlan(['asked', 'b asked']), (id) => id === 'b'),
      {
        execute: ({ resumed }) =>
          resumed === undefined ? waitsFor('review', null, { review_id: 'rev_1' }) : succeeded,
      },
    );
    await waitFor('the question', () => run.recorded.calls.length > 0);
    await run.handle.signal('reviewed', { review_id: 'rev_1', version: 2 });
    expect(await run.ended()).toBe('succeeded');
    expect(idsOf(run.recorded.calls)).toEqual(['asked', 'asked']);
    expect(unitsOf(run)).toEqual(['b<']);
  });

  test('close the run with its last steps, unless one of it has waited', async () => {
    const plan = inline(aPlan(['asked', 'b asked']), (id) => id === 'b');
    const waits = waitsFor('review', null, { review_id: 'rev_1' });
    const [plain, waited] = await Promise.all([
      runs.start(inline(aPlan(['a', 'b a'])), { execute: () => succeeded }),
      runs.start(plan, { execute: ({ resumed }) => (resumed === undefined ? waits : succeeded) }),
    ]);
    await waitFor('the question', () => waited.recorded.calls.length > 0);
    await waited.handle.signal('reviewed', { review_id: 'rev_1', version: 2 });
    const ends = [plain, waited].map(async (run) => [
      await run.ended(),
      ...run.recorded.batches.map(({ closes }) => closes),
    ]);
    expect(await Promise.all(ends)).toEqual([
      ['succeeded', true],
      ['succeeded', undefined],
    ]);
  });

  test('that are cancelled end so, and nothing follows', async () => {
    const run = await runs.start(inline(aPlan(['a', 'b a'])), {
      execute: () => succeeded,
      executeInline: async ({ units, run_id }) => {
        await runs.client.workflow.getHandle(runWorkflowId({ pipeline: 'scripted', run_id })).cancel();
        return { ends: units.map(() => 'again'), took_ms: 1 };
      },
    });
    expect(await run.ended()).toBe('cancelled');
  });

  test('are asked for again in the same way by a worker that takes them over', async () => {
    await runs.replay(...toReplay);
  });
});

test('random plans start each step once, after what it depends on, across many histories', async () => {
  const plans = fc.sample(anyPlan(120), { numRuns: isLong ? 6 : 3, seed: 20_261_121 });
  await Promise.all(
    plans.map(async (plan) => {
      const done = new Set<string>();
      const run = await runs.start(
        given(plan),
        {
          execute: async ({ step_id }) => {
            const at = plan.steps.findIndex(({ id }) => id === step_id);
            for (const before of plan.steps[at]?.dependencies ?? []) {
              if (!done.has(plan.steps[before]?.id ?? '')) throw ApplicationFailure.nonRetryable('too early');
            }
            done.add(step_id);
            return succeeded;
          },
        },
        { history_events: 120 },
      );
      expect(await run.ended()).toBe('succeeded');
      expect(idsOf(run.recorded.calls).toSorted()).toEqual(plan.steps.map(({ id }) => id).toSorted());
    }),
  );
});
