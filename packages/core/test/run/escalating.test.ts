import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { applyEvent, type RunCommand, type RunMachineEvent, startRun } from '../../src/run/machine.ts';
import type { Wait } from '../../src/run/machine-state.ts';
import type { RunPlan } from '../../src/run/plan.ts';
import { anyPlan, anyTurns, nextTurn, type Turn } from './a-plan.ts';

const anyTrouble = fc.record({
  /** Of a thousand executions. */
  escalations: fc.constantFrom(0, 100, 500),
  /** Of a thousand ladders. */
  reviews: fc.constantFrom(0, 300, 900),
  failures: fc.constantFrom(0, 0, 30),
  cancelAfter: fc.option(fc.nat(80), { freq: 3 }),
  timeOutAfter: fc.option(fc.nat(80), { freq: 3 }),
});
type Trouble = typeof anyTrouble extends fc.Arbitrary<infer T> ? T : never;

const review: Wait = { awaiting: 'review', until: null, ladder: true, ref: null };

type Doing = 'execute' | 'escalate' | 'review' | 'give_up';

/** Follows a run from outside: what each step is doing, and whether every command may come. */
function watchRun(plan: RunPlan) {
  const doing = new Map<number, Doing>();
  const ended = new Map<number, string>();
  const started = new Set<number>();
  let isHalted = false;
  let finish: RunCommand | null = null;

  const busy = (): number => [...doing.values()].filter((what) => what !== 'review').length;
  const isDue = (step: number): boolean =>
    !started.has(step) &&
    (plan.steps[step]?.dependencies.every((before) => ended.get(before) === 'succeeded') ?? false);

  const obeyOne = (command: RunCommand): void => {
    expect(finish).toBeNull();
    switch (command.type) {
      case 'execute':
        expect({ isHalted, isDue: isDue(command.step) }).toEqual({ isHalted: false, isDue: true });
        started.add(command.step);
        doing.set(command.step, 'execute');
        break;
      case 'escalate':
      case 'resume':
        expect(isHalted).toBe(false);
        expect(['execute', 'review']).toContain(doing.get(command.step));
        doing.set(command.step, 'escalate');
        break;
      case 'listen':
        expect({ isHalted, was: doing.get(command.step) }).toEqual({ isHalted: false, was: 'escalate' });
        doing.set(command.step, 'review');
        break;
      case 'give_up':
        expect(isHalted).toBe(true);
        expect(doing.get(command.step)).toMatch(/execute|escalate|review/);
        doing.set(command.step, 'give_up');
        break;
      case 'finish':
        finish = command;
        break;
    }
  };

  return {
    doing,
    ended,
    halt: () => {
      isHalted = true;
    },
    isHalted: () => isHalted,
    finished: () => finish,
    obey: (commands: readonly RunCommand[]): void => {
      for (const command of commands) obeyOne(command);
      if (!isHalted) expect(busy()).toBeLessThanOrEqual(plan.max_in_flight);
      const hasRoom = !isHalted && busy() < plan.max_in_flight;
      if (hasRoom) expect(plan.steps.some((_, step) => isDue(step))).toBe(false);
      if (isHalted) expect([...doing.values()]).not.toContain('review');
      expect(finish !== null).toBe(doing.size === 0);
    },
  };
}

/** The end of a step, by chance, with the events that report it. */
function nextEvent(step: number, what: Doing, { luck }: Turn, trouble: Trouble): RunMachineEvent {
  const { escalations, reviews, failures } = trouble;
  const key = { step, item: 0 };
  if (what === 'review') return { type: 'step_woken', ...key };
  if (what === 'give_up')
    return { type: 'step_ended', ...key, state: luck % 2 === 0 ? 'failed' : 'cancelled' };
  if (luck < failures) return { type: 'step_ended', ...key, state: 'failed' };
  if (what === 'execute' && luck < failures + escalations) return { type: 'step_escalated', ...key };
  if (what === 'escalate' && luck < failures + reviews) return { type: 'step_waiting', ...key, wait: review };
  return { type: 'step_ended', ...key, state: 'succeeded' };
}

function play(plan: RunPlan, trouble: Trouble, turns: Iterator<Turn>) {
  const { state, commands } = startRun(plan);
  const run = watchRun(plan);
  const decided = new Set<number>();
  run.obey(commands);
  for (let at = 0; run.finished() === null; at++) {
    expect(at).toBeLessThan(100_000);
    if (at === trouble.timeOutAfter || at === trouble.cancelAfter) {
      run.halt();
      const error = { code: 'run_timeout', message: 'too late' };
      run.obey(
        applyEvent(
          state,
          at === trouble.cancelAfter ? { type: 'cancel_requested' } : { type: 'timed_out', error },
        ),
      );
      continue;
    }
    const turn = nextTurn(turns);
    const waiting = [...run.doing].filter(([step]) => !decided.has(step));
    const [step, what] = waiting[turn.pick % waiting.length] as [number, Doing];
    const event = nextEvent(step, what, turn, trouble);
    if (event.type === 'step_ended') {
      run.doing.delete(step);
      run.ended.set(step, event.state);
      if (event.state !== 'succeeded') run.halt();
    }
    // Until there is room for it, a decided step still counts as in review here.
    if (event.type === 'step_woken') decided.add(step);
    run.obey(applyEvent(state, event));
    for (const one of decided) if (run.doing.get(one) !== 'review') decided.delete(one);
  }
  return { state, run };
}

describe('the run machine with escalating steps', () => {
  it('starts each step once, keeps its room, gives up unneeded steps, and ends when nothing is left', () => {
    fc.assert(
      fc.property(anyPlan(120), anyTrouble, anyTurns, (plan, trouble, turns) => {
        const { state, run } = play(plan, trouble, turns);
        expect(state.steps).not.toContain('pending');
        expect([state.inFlight, state.waits.size, state.phase]).toEqual([0, 0, 'finished']);
        for (const [step, end] of run.ended) expect(state.steps[step]).toBe(end);
        if (!run.isHalted()) expect(state.steps.every((step) => step === 'succeeded')).toBe(true);
      }),
      { numRuns: runs(60) },
    );
  });
});
