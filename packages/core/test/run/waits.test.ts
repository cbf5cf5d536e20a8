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

  it('M10: lets no more than 32 wait for a free slot, and the next as soon as one leaves the line', () => {
    const slot: Wait = { awaiting: 'slot', until: null, ref: null };
    const { state } = startRun({ ...fanPlan(200), max_in_flight: 1 });
    applyEvent(state, beginItems(100));
    for (let item = 1; item < 32; item++) {
      expect(applyEvent(state, waiting(item, slot))).toEqual([
        { type: 'listen', step: 0, item, wait: slot },
        { type: 'execute', step: 0, item: item + 1 },
      ]);
    }
    expect(applyEvent(state, waiting(32, slot))).toEqual([{ type: 'listen', step: 0, item: 32, wait: slot }]);
    expect(state.fans.get(0)).toMatchObject({ inLine: 32, running: 32 });
    expect(applyEvent(state, woken(1))).toEqual([{ type: 'resume', step: 0, item: 1, wait: slot }]);
    expect(state.fans.get(0)?.inLine).toBe(31);
    expect(applyEvent(state, waiting(1, pause))).toEqual([
      { type: 'listen', step: 0, item: 1, wait: pause },
      { type: 'execute', step: 0, item: 33 },
    ]);
  });

  it('M10: begins the next in the moment in which one leaves the line, where there is room for both', () => {
    const slot: Wait = { awaiting: 'slot', until: null, ref: null };
    const { state } = startRun({ ...fanPlan(200), max_in_flight: 3 });
    applyEvent(state, beginItems(100));
    for (let item = 1; item <= 34; item++) applyEvent(state, waiting(item, slot));
    expect([state.inFlight, state.fans.get(0)?.inLine]).toEqual([0, 34]);
    const end = (item: number) => ({ type: 'step_ended', step: 0, item, state: 'succeeded' }) as const;
    play({ state, commands: [] }, [woken(1), end(1), woken(2), end(2)]);
    expect(applyEvent(state, woken(3))).toEqual([
      { type: 'resume', step: 0, item: 3, wait: slot },
      { type: 'execute', step: 0, item: 35 },
      { type: 'execute', step: 0, item: 36 },
    ]);
  });

  it.each(['retry', 'callback'] as const)('keeps its place while it waits for %s', (awaiting) => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(2), waiting(1, { awaiting, until: null, ref: null })]);
    expect(state.fans.get(0)).toMatchObject({ running: 1, next: 1, inLine: 0 });
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

describe('an item whose child run waits for people alone', () => {
  const child: Wait = { awaiting: 'run', until: null, ref: { run_id: 'run_1' } };
  const other: Wait = { awaiting: 'run', until: null, ref: { run_id: 'run_2' } };
  const rest = (item: number, run: string, rests: boolean): RunMachineEvent => ({
    type: 'child_rest',
    step: 0,
    item,
    child: run,
    rests,
  });
  const begins = (item: number) => ({ type: 'execute', step: 0, item });
  const succeeds = (item: number): RunMachineEvent => ({
    type: 'step_ended',
    step: 0,
    item,
    state: 'succeeded',
  });

  it('leaves its place to the next, once, however often its child run reports it', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(4), waiting(1, child)]);
    expect(applyEvent(state, rest(1, 'run_1', true))).toEqual([begins(2)]);
    expect(applyEvent(state, rest(1, 'run_1', true))).toEqual([]);
    expect(applyEvent(state, waiting(2, other))).toMatchObject([{ type: 'listen' }]);
    expect(applyEvent(state, rest(2, 'run_2', true))).toEqual([begins(3)]);
  });

  it('leaves it as soon as it waits, if its child run has reported it before', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(2), rest(1, 'run_1', true)]);
    expect(state.fans.get(0)?.running).toBe(1);
    expect(applyEvent(state, waiting(1, child))).toMatchObject([{ type: 'listen' }, begins(2)]);
  });

  it.each([
    ['another child run of it has reported it', [rest(1, 'run_0', true)]],
    ['another child run of it withdraws it', [rest(1, 'run_0', true), rest(1, 'run_1', false)]],
    ['an item that has not begun has reported it', [rest(2, 'run_1', true)]],
    ['the report is withdrawn before it waits', [rest(1, 'run_1', true), rest(1, 'run_1', false)]],
  ])('keeps it where %s', (_, news) => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(2), ...news]);
    expect(applyEvent(state, waiting(1, child))).toMatchObject([{ type: 'listen' }]);
    expect(state.fans.get(0)?.running).toBe(1);
  });

  it('still rests when another child run of it works again, and when it would climb', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(2), rest(1, 'run_1', true), rest(1, 'run_0', false)]);
    applyEvent(state, { type: 'step_escalated', step: 0, item: 1 });
    expect(applyEvent(state, waiting(1, child))).toMatchObject([{ type: 'listen' }, begins(2)]);
    const climbing = startRun(fanPlan(1)).state;
    play({ state: climbing, commands: [] }, [beginItems(2), { type: 'step_escalated', step: 0, item: 1 }]);
    applyEvent(climbing, rest(1, 'run_1', true));
    expect(applyEvent(climbing, waiting(1, child))).toMatchObject([{ type: 'listen' }, begins(2)]);
  });

  it('does not rest for what it has waited for otherwise, or before it began', () => {
    const { state } = startRun(fanPlan(1));
    const slot: Wait = { awaiting: 'slot', until: null, ref: { run_id: 'run_1' } };
    play({ state, commands: [] }, [
      beginItems(2),
      rest(1, 'run_1', true),
      rest(2, 'run_2', true),
      waiting(1, slot),
    ]);
    expect(state.fans.get(0)).toMatchObject({ running: 1, next: 1 });
    expect([...state.resting.keys()]).toEqual(['0/1']);
  });

  it('counts among the resting waits until it continues', () => {
    const { state } = startRun(fanPlan(2));
    play({ state, commands: [] }, [
      beginItems(2),
      waiting(1, child),
      rest(1, 'run_1', true),
      waiting(2, other),
    ]);
    play({ state, commands: [] }, [rest(2, 'run_2', true)]);
    expect(state.restingWaits).toBe(2);
    applyEvent(state, woken(1));
    expect([state.restingWaits, state.isAtRest]).toEqual([1, false]);
    applyEvent(state, succeeds(1));
    expect(state.isAtRest).toBe(true);
  });

  it('continues at once, and no further item begins before there are fewer than max_parallel', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(3), waiting(1, child), rest(1, 'run_1', true)]);
    expect(applyEvent(state, rest(1, 'run_1', false))).toEqual([]);
    expect(state.fans.get(0)?.running).toBe(2);
    expect(applyEvent(state, woken(1))).toMatchObject([{ type: 'resume', item: 1 }]);
    expect(applyEvent(state, succeeds(2))).toEqual([]);
    expect(applyEvent(state, succeeds(1))).toEqual([begins(3)]);
    expect(state.fans.get(0)?.running).toBe(1);
  });

  it('takes the end of its child run at once, and lets items that wait for room come in their order', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(4), waiting(1, child), rest(1, 'run_1', true)]);
    play({ state, commands: [] }, [waiting(2, pause), waiting(3, pause), woken(2), woken(3)]);
    expect(state.fans.get(0)?.blocked).toEqual(['0/2', '0/3']);
    expect(applyEvent(state, woken(1))).toMatchObject([{ type: 'resume', item: 1 }]);
    expect(applyEvent(state, succeeds(1))).toEqual([]);
    expect(state.fans.get(0)?.blocked).toEqual(['0/2', '0/3']);
    expect(applyEvent(state, succeeds(4))).toMatchObject([{ type: 'resume', item: 2 }]);
  });

  it('begins nothing in a pause or after a cancel', () => {
    const { state } = startRun(fanPlan(1));
    play({ state, commands: [] }, [beginItems(3), waiting(1, child), { type: 'paused' }]);
    expect(applyEvent(state, rest(1, 'run_1', true))).toMatchObject([]);
    expect(applyEvent(state, { type: 'resumed' })).toEqual([begins(2)]);
    applyEvent(state, { type: 'cancel_requested' });
    expect(applyEvent(state, rest(2, 'run_2', true))).toEqual([]);
  });
});

describe('a run', () => {
  const subRunOf = (run_id: string): Wait => ({ awaiting: 'run', until: null, ref: { run_id } });
  const rest = (step: number, rests: boolean): RunMachineEvent => ({
    type: 'child_rest',
    step,
    item: 0,
    child: 'run_1',
    rests,
  });
  const changes = (state: MachineState, event: RunMachineEvent): boolean =>
    applyEvent(state, event).some(({ type }) => type === 'rest_changed');

  it('M13: rests while every open unit waits for reviews, and reports each change once', () => {
    const { state } = startRun(aPlan(['a', 'b', 'c a']));
    expect(changes(state, waiting(0, review))).toBe(false);
    expect(changes(state, waiting(0, review, 1))).toBe(true);
    expect(state.isAtRest).toBe(true);
    expect(changes(state, woken(0))).toBe(true);
    expect(changes(state, { type: 'step_ended', step: 0, item: 0, state: 'succeeded' })).toBe(false);
    expect(changes(state, waiting(0, review, 2))).toBe(true);
    expect(state.isAtRest).toBe(true);
  });

  it.each([
    ['a time', pause],
    ['a child run that works', subRunOf('run_2')],
    ['a free slot', { awaiting: 'slot', until: null, ref: null } satisfies Wait],
  ])('does not rest while a step waits for %s', (_, wait) => {
    const { state } = startRun(aPlan(['a', 'b']));
    expect(changes(state, waiting(0, review))).toBe(false);
    expect(changes(state, waiting(0, wait, 1))).toBe(false);
  });

  it('passes on the rest of a child run, as a step and among items', () => {
    const { state } = startRun(aPlan(['a', 'b']));
    play({ state, commands: [] }, [waiting(0, subRunOf('run_1')), waiting(0, review, 1)]);
    expect(changes(state, rest(0, true))).toBe(true);
    expect(changes(state, rest(0, true))).toBe(false);
    expect(changes(state, rest(0, false))).toBe(true);
    const fan = startRun(fanPlan(1));
    play(fan, [beginItems(2), waiting(1, review), waiting(2, subRunOf('run_1'))]);
    expect(changes(fan.state, { ...rest(0, true), item: 2 } as RunMachineEvent)).toBe(true);
  });

  it('rests while as many units wait for people as may, whatever is to begin', () => {
    const steps = Array.from({ length: mostWaits + 1 }, (_, at) => `s${at}`);
    const { state } = startRun(aPlan(steps, 1));
    for (let step = 0; step < mostWaits - 1; step++) applyEvent(state, waiting(0, review, step));
    expect(state.isAtRest).toBe(false);
    expect(changes(state, waiting(0, review, mostWaits - 1))).toBe(true);
  });

  it('does not rest while a step is decided beside one in flight', () => {
    const { steps } = aPlan(['a', 'b', 'c']);
    const planned = steps.map((step) => (step.id === 'c' ? ({ ...step, decides: true } as const) : step));
    const { state } = startRun({ steps: planned, max_in_flight: 200 });
    expect(changes(state, waiting(0, review))).toBe(false);
  });

  it('does not rest in a pause in which a step is to be decided, or an item to begin', () => {
    const { steps } = aPlan(['a', 'b', 'c b']);
    const planned = steps.map((step) => (step.id === 'c' ? ({ ...step, decides: true } as const) : step));
    const decided = startRun({ steps: planned, max_in_flight: 200 }).state;
    play({ state: decided, commands: [] }, [waiting(0, review), { type: 'paused' }]);
    expect(changes(decided, { type: 'step_ended', step: 1, item: 0, state: 'succeeded' })).toBe(false);
    const items = startRun(fanPlan(2)).state;
    play({ state: items, commands: [] }, [beginItems(3), { type: 'paused' }, waiting(1, review)]);
    expect(changes(items, { type: 'step_ended', step: 0, item: 2, state: 'succeeded' })).toBe(false);
  });

  it('does not rest in a pause in which something is to begin', () => {
    const { state } = startRun(aPlan(['a', 'b', 'c b']));
    play({ state, commands: [] }, [waiting(0, review), { type: 'paused' }]);
    expect(changes(state, { type: 'step_ended', step: 1, item: 0, state: 'succeeded' })).toBe(false);
    const asks = startRun(aPlan(['a'])).state;
    play({ state: asks, commands: [] }, [{ type: 'paused' }, waiting(0, review)]);
    expect(asks.isAtRest).toBe(true);
    expect(changes(asks, woken(0))).toBe(true);
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
