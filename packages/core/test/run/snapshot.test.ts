import { describe, expect, it } from 'vitest';
import { hasShape } from '../../src/received/shape.ts';
import { applyEvent, type BegunRun, type RunMachineEvent, startRun } from '../../src/run/machine.ts';
import type { MachineState, Wait } from '../../src/run/machine-state.ts';
import type { PlannedStep, RunPlan } from '../../src/run/plan.ts';
import { type RunSnapshot, restoreRun, snapshotShape, takeSnapshot } from '../../src/run/snapshot.ts';
import { aPlan } from './a-plan.ts';

const review: Wait = { awaiting: 'review', until: null, ladder: true, ref: { review_id: 'rev_1' } };
const pause: Wait = { awaiting: 'time', until: 5_000, ref: null };

/** The result of `aPlan`, with further fields of some steps. */
function planWith(lines: readonly string[], more: Readonly<Record<string, Partial<PlannedStep>>>): RunPlan {
  const plan = aPlan(lines);
  return { ...plan, steps: plan.steps.map((step) => ({ ...step, ...more[step.id] })) };
}

function play({ state }: BegunRun, events: readonly RunMachineEvent[]): MachineState {
  for (const event of events) applyEvent(state, event);
  return state;
}

function ended(
  step: number,
  state: 'succeeded' | 'failed' | 'unknown' | 'skipped',
  item = 0,
): RunMachineEvent {
  return { type: 'step_ended', step, item, state };
}

function waiting(step: number, wait: Wait, item = 0): RunMachineEvent {
  return { type: 'step_waiting', step, item, wait };
}

/** As a workflow carries it. */
function carry(plan: RunPlan, state: MachineState): BegunRun {
  return restoreRun(plan, JSON.parse(JSON.stringify(takeSnapshot(state))) as RunSnapshot);
}

const soft: RunMachineEvent = { type: 'history_grew', pressure: 'soft' };

describe('a snapshot', () => {
  it('writes each state as a letter, and how often it comes in a row', () => {
    const continuing = { continues: true } as const;
    const plan = planWith(['a', 'b', 'c', 'd a b c', 'e a b c', 'f', 'g f'], {
      a: continuing,
      b: continuing,
      f: continuing,
    });
    const state = play(startRun(plan), [soft, ended(2, 'succeeded'), ended(5, 'skipped')]);
    play({ state, commands: [] }, [ended(0, 'failed'), ended(1, 'unknown')]);
    expect(takeSnapshot(state)).toEqual({
      steps: 'fusk4',
      fans: [],
      waits: [],
      woken: [],
      isPaused: false,
    });
  });

  it('has a letter of its own for each state', () => {
    const { state } = startRun(aPlan(Array.from({ length: 11 }, (_, at) => `s${at}`)));
    const all = ['pending', 'deciding', 'running', 'escalating', 'waiting', 'succeeded', 'failed'] as const;
    state.steps.splice(0, 11, ...all, 'unknown', 'skipped', 'cancelled', 'reused');
    expect(takeSnapshot(state).steps).toBe('pdrewsfukco');
  });

  it('holds which child runs rest, and whether the run does', () => {
    const plan = planWith(['a', 'b'], { a: { decides: true, each: { max_parallel: 1 } } });
    const child = (item: number): Wait => ({ awaiting: 'run', until: null, ref: { run_id: `run_${item}` } });
    const rest = (item: number, rests: boolean): RunMachineEvent => ({
      type: 'child_rest',
      step: 0,
      item,
      child: `run_${item}`,
      rests,
    });
    const state = play(startRun(plan), [
      { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 3 }] },
      waiting(0, child(1), 1),
      rest(1, true),
      waiting(0, child(2), 2),
      waiting(1, review),
    ]);
    const working = carry(plan, state);
    expect(takeSnapshot(working.state)).toEqual(takeSnapshot(state));
    expect([working.state.fans.get(0)?.running, working.state.isAtRest]).toEqual([1, false]);
    expect(applyEvent(working.state, rest(2, true))).toEqual([{ type: 'execute', step: 0, item: 3 }]);
    play(working, [waiting(0, child(3), 3), rest(3, true)]);
    const resting = carry(plan, working.state);
    expect([resting.state.fans.get(0)?.running, resting.state.isAtRest]).toEqual([0, true]);
    expect(resting.commands.map(({ type }) => type)).toEqual(['listen', 'listen', 'listen', 'listen']);
    expect(applyEvent(resting.state, rest(3, false))).toEqual([{ type: 'rest_changed' }]);
    expect(resting.state.fans.get(0)?.running).toBe(1);
  });

  it('holds waiting and woken items', () => {
    const state = play(startRun(aPlan(['a', 'b', 'c'])), [
      { type: 'history_grew', pressure: 'hard' },
      waiting(0, review),
      waiting(1, pause),
      { type: 'step_woken', step: 0, item: 0 },
      { type: 'paused' },
      ended(2, 'succeeded'),
    ]);
    expect(takeSnapshot(state)).toEqual({
      steps: 'w2s',
      fans: [],
      waits: [
        { step: 0, item: 0, wait: review },
        { step: 1, item: 0, wait: pause },
      ],
      woken: [{ step: 0, item: 0 }],
      isPaused: true,
    });
  });

  it('holds the items of an open step, not of one that has ended', () => {
    const each = { decides: true, each: { max_parallel: 2, tolerate: 1 } } as const;
    const plan = planWith(['a', 'b'], { a: each, b: each });
    const state = play(startRun(plan), [
      {
        type: 'decided',
        steps: [0, 1],
        verdicts: [
          { type: 'go', items: 4 },
          { type: 'go', items: 1 },
        ],
      },
      { type: 'history_grew', pressure: 'hard' },
      ended(1, 'succeeded', 1),
      ended(0, 'failed', 1),
      waiting(0, pause, 2),
    ]);
    expect(takeSnapshot(state)).toEqual({
      steps: 'rs',
      fans: [
        { step: 0, items: 'fwp2', next: 2, failed: 1, firstFailure: 'item 1: failed', isStopping: false },
      ],
      waits: [{ step: 0, item: 2, wait: pause }],
      woken: [],
      isPaused: false,
    });
  });
});

describe('a run that continues from a snapshot', () => {
  it('begins ready steps, and those that follow ended ones', () => {
    const plan = aPlan(['a', 'b a', 'c', 'd c', 'e b d']);
    const state = play(startRun(plan), [
      soft,
      ended(0, 'succeeded'),
      ended(1, 'succeeded'),
      ended(2, 'succeeded'),
    ]);
    expect(takeSnapshot(state).steps).toBe('s3p2');
    const begun = carry(plan, state);
    expect(begun.commands).toEqual([{ type: 'execute', step: 3, item: 0 }]);
    const commands = applyEvent(begun.state, ended(3, 'succeeded'));
    expect(commands).toEqual([{ type: 'execute', step: 4, item: 0 }]);
  });

  it('begins nothing whose dependencies are not all done', () => {
    const plan = aPlan(['a', 'b', 'c a b', 'd a']);
    const state = play(startRun(plan), [
      { type: 'history_grew', pressure: 'hard' },
      waiting(1, pause),
      ended(0, 'succeeded'),
    ]);
    expect(carry(plan, state).commands).toEqual([
      { type: 'listen', step: 1, item: 0, wait: pause },
      { type: 'execute', step: 3, item: 0 },
    ]);
  });

  it.each(['failed', 'unknown'] as const)('judges as it was what has %s', (end) => {
    const plan = planWith(['a', 'b', 'c a b', 'd c'], {
      a: { continues: true },
      c: { run_if: 'any_failed' },
      d: { run_if: 'all_done' },
    });
    const state = play(startRun(plan), [
      { type: 'history_grew', pressure: 'hard' },
      waiting(1, pause),
      ended(0, end),
    ]);
    const carried = carry(plan, state);
    applyEvent(carried.state, { type: 'step_woken', step: 1, item: 0 });
    expect(applyEvent(carried.state, ended(1, 'succeeded'))).toEqual([{ type: 'execute', step: 2, item: 0 }]);
  });

  it.each([
    ['any_succeeded', 'skipped', 'execute'],
    ['any_failed', 'skipped', 'record'],
  ] as const)('with %s after a success and one that was %s: %s', (run_if, second, first) => {
    const plan = planWith(['a', 'b', 'c a b'], { c: { run_if } });
    const state = play(startRun(plan), [
      { type: 'history_grew', pressure: 'hard' },
      waiting(1, pause),
      ended(0, 'succeeded'),
    ]);
    const carried = carry(plan, state);
    applyEvent(carried.state, { type: 'step_woken', step: 1, item: 0 });
    expect(applyEvent(carried.state, ended(1, second))[0]?.type).toBe(first);
  });

  it('counts results that were taken over as good ones', () => {
    const plan: RunPlan = { ...aPlan(['a', 'b', 'c a b']), reused: [0] };
    const state = play(startRun(plan), [{ type: 'history_grew', pressure: 'hard' }, waiting(1, pause)]);
    expect(takeSnapshot(state).steps).toBe('owp');
    const carried = carry(plan, state);
    applyEvent(carried.state, { type: 'step_woken', step: 1, item: 0 });
    expect(applyEvent(carried.state, ended(1, 'succeeded'))).toEqual([{ type: 'execute', step: 2, item: 0 }]);
  });

  it('listens for waiting items, and resumes woken ones', () => {
    const plan = aPlan(['a', 'b']);
    const state = play(startRun(plan), [
      { type: 'history_grew', pressure: 'hard' },
      waiting(0, review),
      waiting(1, pause),
      { type: 'step_woken', step: 1, item: 0 },
    ]);
    const carried = carry(plan, state);
    expect(carried.commands).toEqual([
      { type: 'listen', step: 0, item: 0, wait: review },
      { type: 'resume', step: 1, item: 0, wait: pause },
    ]);
    expect(carried.state).toMatchObject({ reviews: 1, inFlight: 1 });
  });

  it('begins the items of a step that was decided and had not begun', () => {
    const plan = planWith(['a'], { a: { decides: true, each: {} } });
    const state = play(startRun(plan), [
      { type: 'history_grew', pressure: 'hard' },
      { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 2 }] },
    ]);
    expect(takeSnapshot(state)).toMatchObject({ steps: 'p', fans: [{ step: 0, items: 'p2', next: 0 }] });
    const carried = carry(plan, state);
    expect(carried.commands).toEqual([
      { type: 'execute', step: 0, item: 1 },
      { type: 'execute', step: 0, item: 2 },
    ]);
    expect(carried.state.steps).toEqual(['running']);
  });

  it.each([
    ['has items to begin', { items: 'wp', next: 1, isStopping: false }, [0]],
    ['has begun all its items', { items: 'w', next: 1, isStopping: false }, []],
    ['begins no others', { items: 'wp', next: 1, isStopping: true }, []],
  ])('knows whether a step %s', (_, fan, open) => {
    const plan = planWith(['a'], { a: { decides: true, each: {} } });
    const { state } = restoreRun(plan, {
      steps: 'r',
      fans: [{ step: 0, failed: 0, firstFailure: null, ...fan }],
      waits: [{ step: 0, item: 1, wait: pause }],
      woken: [],
      isPaused: true,
    });
    expect([...state.openFans]).toEqual(open);
  });

  it('stays paused', () => {
    const plan = aPlan(['a', 'b a']);
    const state = play(startRun(plan), [{ type: 'paused' }, ended(0, 'succeeded')]);
    const carried = carry(plan, state);
    expect(carried.commands).toEqual([]);
    expect(applyEvent(carried.state, { type: 'resumed' })).toEqual([{ type: 'execute', step: 1, item: 0 }]);
  });

  it('continues with the items that are left, and counts those that failed before', () => {
    const plan = planWith(['a'], { a: { decides: true, each: { max_parallel: 2, tolerate: 1 } } });
    const state = play(startRun(plan), [
      { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 4 }] },
      { type: 'history_grew', pressure: 'hard' },
      ended(0, 'failed', 1),
      waiting(0, pause, 2),
    ]);
    const carried = carry(plan, state);
    expect(carried.commands).toEqual([
      { type: 'listen', step: 0, item: 2, wait: pause },
      { type: 'execute', step: 0, item: 3 },
      { type: 'execute', step: 0, item: 4 },
    ]);
    expect(carried.state.fans.get(0)).toMatchObject({ open: 3, running: 2, next: 4, blocked: [], inLine: 0 });
    const commands = applyEvent(carried.state, ended(0, 'failed', 3));
    expect(commands).toContainEqual({ type: 'give_up', step: 0, item: 2, wait: pause });
  });

  it('keeps items with a result of an earlier run, and grows with no more than a letter for each', () => {
    const plan = planWith(['a'], { a: { decides: true, each: { max_parallel: 1 } } });
    const kept = 'op'.repeat(5_000);
    const state = play(startRun(plan), [
      { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 10_000, kept }] },
      { type: 'history_grew', pressure: 'hard' },
      ended(0, 'succeeded', 2),
    ]);
    const snapshot = takeSnapshot(state);
    expect(snapshot.fans[0]?.items).toBe(`os${kept.slice(2)}`);
    const carried = carry(plan, state);
    expect(carried.commands).toEqual([{ type: 'execute', step: 0, item: 4 }]);
  });

  it('begins no item of a step of which too many have failed', () => {
    const plan = planWith(['a'], { a: { decides: true, continues: true, each: { max_parallel: 2 } } });
    const state = play(startRun(plan), [
      { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 4 }] },
      ended(0, 'failed', 1),
      { type: 'history_grew', pressure: 'hard' },
    ]);
    const snapshot = takeSnapshot(state);
    expect(snapshot.fans).toMatchObject([{ isStopping: true, next: 2 }]);
    expect(restoreRun(plan, snapshot).state.openFans.size).toBe(0);
  });

  it('keeps an item that was woken and had no room', () => {
    const subRun: Wait = { awaiting: 'run', until: null, ref: null };
    const plan = planWith(['a'], { a: { decides: true, each: { max_parallel: 1 } } });
    const state = play(startRun(plan), [
      { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 2 }] },
      waiting(0, pause, 1),
      { type: 'step_woken', step: 0, item: 1 },
      { type: 'history_grew', pressure: 'hard' },
      waiting(0, subRun, 2),
    ]);
    expect(takeSnapshot(state)).toMatchObject({ woken: [{ step: 0, item: 1 }] });
  });
});

describe('a step with rounds', () => {
  const plan = planWith(['a', 'b a'], { a: { decides: true, repeats: true } });
  const judged = (item: number, verdict: object) =>
    ({ type: 'judged', step: 0, item, verdict }) as unknown as RunMachineEvent;
  const going: RunMachineEvent = { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 1 }] };

  it('continues with the wait for its next round, and takes no judgement twice', () => {
    const state = play(startRun(plan), [
      going,
      soft,
      ended(0, 'succeeded', 1),
      judged(1, { type: 'again', until: 5_000 }),
    ]);
    expect(takeSnapshot(state)).toEqual({
      steps: 'rp',
      fans: [{ step: 0, items: 'sw', next: 2, failed: 0, firstFailure: null, isStopping: false }],
      waits: [{ step: 0, item: 2, wait: pause }],
      woken: [],
      isPaused: false,
    });
    const carried = carry(plan, state);
    expect(applyEvent(carried.state, judged(1, { type: 'done' }))).toEqual([]);
    expect(applyEvent(carried.state, { type: 'step_woken', step: 0, item: 2 })).toEqual([
      { type: 'resume', step: 0, item: 2, wait: pause },
    ]);
    expect(applyEvent(carried.state, ended(0, 'succeeded', 2))).toEqual([
      { type: 'judge', step: 0, item: 2 },
    ]);
    expect(carried.state.fans.get(0)?.open).toBe(0);
    expect(applyEvent(carried.state, judged(2, { type: 'done' }))).toEqual([
      { type: 'execute', step: 1, item: 0 },
    ]);
  });

  it('fails with the state of a round that gives no reason', () => {
    const state = play(startRun(plan), [going, ended(0, 'failed', 1)]);
    expect(state.error).toEqual({
      code: 'step_failed',
      message: 'step a: round 1: failed',
      details: { step_id: 'a', code: 'internal' },
    });
  });
});

it('a race that is won in a pause continues with its step, though the losers have no end', () => {
  const continues = { continues: true } as const;
  const plan = planWith(['a', 'b', 'j a b'], {
    a: continues,
    b: continues,
    j: { race: { count: 1, of: [0, 1] } },
  });
  const cancelled = { type: 'step_ended', step: 1, item: 0, state: 'cancelled' } as const;
  const state = play(startRun(plan), [{ type: 'paused' }, ended(0, 'succeeded'), soft, cancelled]);
  expect(takeSnapshot(state).steps).toBe('scp');
  const carried = carry(plan, state);
  expect(applyEvent(carried.state, { type: 'resumed' })).toEqual([{ type: 'execute', step: 2, item: 0 }]);
});

describe('the shape of a snapshot', () => {
  const fan = { step: 1, items: 'sw', next: 2, failed: 0, firstFailure: null, isStopping: false };
  const unit = { step: 1, item: 2 };
  const snapshot = {
    steps: 's2p',
    fans: [fan],
    waits: [{ ...unit, wait: pause }],
    woken: [unit],
    resting: [unit],
    isPaused: false,
  };
  const faultOf = (part: object) => snapshotShape(3)({ ...snapshot, ...part }, 'machine');

  it('takes what is one', () => {
    expect([faultOf({}), faultOf({ resting: undefined, isAtRest: true })]).toEqual([null, null]);
    expect(faultOf({ fans: [{ ...fan, items: 's10000', good: 1, missed: 2 }] })).toBeNull();
  });

  it.each<[string, object]>([
    ['another number of steps', { steps: 's2' }],
    ['no text of states', { steps: 'S3' }],
    ['a count of seven digits', { steps: 's0000003' }],
    ['more items than are allowed', { fans: [{ ...fan, items: 's10001' }] }],
    ['a step that is none', { fans: [{ ...fan, step: 3 }] }],
    ['a wait without a cause', { waits: [{ ...unit, wait: { ...pause, awaiting: 1 } }] }],
    ['a wait that is none', { waits: [{ ...unit, wait: {} }] }],
    ['a wake without an item', { woken: [{ step: 1 }] }],
    ['a rest without an item', { resting: [{ step: 1 }] }],
    ['a rest of a step that is none', { resting: [{ step: 3, item: 1 }] }],
  ])('takes not: %s', (_, part) => {
    expect(faultOf(part)).not.toBeNull();
    expect(hasShape(snapshotShape(3), { ...snapshot, ...part })).toBe(false);
  });

  it('names the states that it takes', () => {
    expect(faultOf({ steps: 's2' })).toContain('the states of 3 steps');
    expect(faultOf({ fans: [{ ...fan, items: 7 }] })).toContain('the states of at most 10000 items');
  });
});
