import { describe, expect, it } from 'vitest';
import { applyEvent, type BegunRun, type RunMachineEvent, startRun } from '../../src/run/machine.ts';
import type { MachineState, Wait } from '../../src/run/machine-state.ts';
import type { RunPlan } from '../../src/run/plan.ts';
import { hearsWake, mostWaits } from '../../src/run/waits.ts';
import { aPlan } from './a-plan.ts';

const review: Wait = { awaiting: 'review', until: null, ladder: true, ref: null };
const pause: Wait = { awaiting: 'time', until: 5_000, ref: null };
const subRun: Wait = { awaiting: 'run', until: null, ref: null };

function play({ state }: BegunRun, events: readonly RunMachineEvent[]): MachineState {
  for (const event of events) applyEvent(state, event);
  return state;
}

/** A step of so many items, so many at once. */
function fanPlan(maxParallel: number): RunPlan {
  const [step] = aPlan(['a']).steps;
  if (step === undefined) throw new RangeError('no step');
  return { steps: [{ ...step, decides: true, each: { max_parallel: maxParallel } }], max_in_flight: 200 };
}

function beginItems(items: number): RunMachineEvent {
  return { type: 'decided', steps: [0], verdicts: [{ type: 'go', items }] };
}

function waiting(item: number, wait: Wait, step = 0): RunMachineEvent {
  return { type: 'step_waiting', step, item, wait };
}

function woken(item: number, step = 0): RunMachineEvent {
  return { type: 'step_woken', step, item };
}

describe('a waiting unit', () => {
  it('is counted when it waits for a review, until it continues', () => {
    const begun = startRun(aPlan(['a', 'b']));
    expect(play(begun, [waiting(0, review)]).reviews).toBe(1);
    expect(play(begun, [waiting(0, pause, 1)])).toMatchObject({
      reviews: 1,
      inFlight: 0,
    });
    expect(play(begun, [woken(0)])).toMatchObject({ reviews: 0, inFlight: 1 });
    expect(play(begun, [woken(0, 1)])).toMatchObject({ reviews: 0, inFlight: 2 });
  });

  it('continues where it was: with its ladder, or with its call', () => {
    const begun = startRun(aPlan(['a', 'b']));
    const state = play(begun, [waiting(0, review), waiting(0, pause, 1), woken(0), woken(0, 1)]);
    expect([...state.steps, state.escalating]).toEqual(['escalating', 'running', 1]);
  });

  it('M5: lets nothing begin while so many wait, but continues itself', () => {
    const plan = aPlan(
      Array.from({ length: mostWaits + 2 }, (_, at) => `s${at}`),
      1,
    );
    const { state } = startRun(plan);
    for (let step = 0; step < mostWaits - 1; step++) applyEvent(state, waiting(0, pause, step));
    const last = applyEvent(state, waiting(0, pause, mostWaits - 1));
    expect(last).toEqual([{ type: 'listen', step: mostWaits - 1, item: 0, wait: pause }]);
    expect(state.inFlight).toBe(0);
    expect(applyEvent(state, woken(0, 5))).toEqual([{ type: 'resume', step: 5, item: 0, wait: pause }]);
    expect(applyEvent(state, { type: 'step_ended', step: 5, item: 0, state: 'succeeded' })).toEqual([
      { type: 'execute', step: mostWaits, item: 0 },
    ]);
  });
});

describe('an item that waits', () => {
  it('leaves its place to the next', () => {
    const { state } = startRun(fanPlan(1));
    applyEvent(state, beginItems(2));
    expect(applyEvent(state, waiting(1, pause))).toEqual([
      { type: 'listen', step: 0, item: 1, wait: pause },
      { type: 'execute', step: 0, item: 2 },
    ]);
  });

  it('keeps its place while it waits for a child run, and gives it back when it continues', () => {
    const { state } = startRun(fanPlan(1));
    applyEvent(state, beginItems(2));
    expect(applyEvent(state, waiting(1, subRun))).toEqual([
      { type: 'listen', step: 0, item: 1, wait: subRun },
    ]);
    expect(state.fans.get(0)?.running).toBe(1);
    expect(applyEvent(state, woken(1))).toEqual([{ type: 'resume', step: 0, item: 1, wait: subRun }]);
    expect(state.fans.get(0)?.running).toBe(1);
    expect(applyEvent(state, { type: 'step_ended', step: 0, item: 1, state: 'succeeded' })).toEqual([
      { type: 'execute', step: 0, item: 2 },
    ]);
  });

  it('waits for room among the items when it comes back, and comes before those that have not begun', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(3), waiting(1, pause)]);
    expect(applyEvent(state, woken(1))).toEqual([]);
    expect(state.fans.get(0)?.blocked).toEqual(['0/1']);
    expect(applyEvent(state, { type: 'step_ended', step: 0, item: 2, state: 'succeeded' })).toEqual([
      { type: 'resume', step: 0, item: 1, wait: pause },
    ]);
  });
});

it('items that are woken come back in their order, whatever another one begins to wait for', () => {
  const { state } = startRun(fanPlan(1));
  play({ state, commands: [] }, [beginItems(4), waiting(1, pause), waiting(2, pause), woken(1), woken(2)]);
  play({ state, commands: [] }, [waiting(3, subRun)]);
  expect(state.fans.get(0)?.blocked).toEqual(['0/1', '0/2']);
});

describe('a wake', () => {
  it.each([
    ['of a step at work, which may be about to wait', [], true],
    [
      'of a step with a ladder, which may be about to wait',
      [{ type: 'step_escalated', step: 0, item: 0 }],
      true,
    ],
    ['of a step that waits', [waiting(0, pause)], true],
    ['of a step that has ended', [{ type: 'step_ended', step: 0, item: 0, state: 'succeeded' }], false],
    [
      'of a step that was woken and has no room yet',
      [{ type: 'paused' }, waiting(0, pause), woken(0)],
      false,
    ],
  ] as const)('%s is kept: %3$s', (_, events, isKept) => {
    const state = play(startRun(aPlan(['a', 'b'])), events as readonly RunMachineEvent[]);
    expect(hearsWake(state, { step: 0, item: 0 })).toBe(isKept);
  });

  it('of an item that was woken and waits for room is not kept a second time', () => {
    const state = play(startRun(fanPlan(1)), [beginItems(2), waiting(1, pause)]);
    expect(hearsWake(state, { step: 0, item: 1 })).toBe(true);
    applyEvent(state, woken(1));
    expect(hearsWake(state, { step: 0, item: 1 })).toBe(false);
  });

  it('of a step that has not begun is not kept', () => {
    expect(hearsWake(startRun(aPlan(['a', 'b a'])).state, { step: 1, item: 0 })).toBe(false);
  });
});
