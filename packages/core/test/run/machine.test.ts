import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import {
  applyEvent,
  type MachineState,
  type RunCommand,
  type RunMachineEvent,
  type StepVerdict,
  startRun,
} from '../../src/run/machine.ts';
import type { UnitKey, Wait } from '../../src/run/machine-state.ts';
import type { RunPlan } from '../../src/run/plan.ts';
import type { RoundVerdict } from '../../src/run/repeat/rounds.ts';
import { anyPlan, anyTrouble, anyTurns, endOf, nextTurn, planOf, type Trouble, type Turn } from './a-plan.ts';
import { stories } from './machine-stories.ts';
import { raceStories } from './race-stories.ts';

const timeout = { code: 'run_timeout', message: 'too late' };

type StepEvent = RunMachineEvent & { readonly type: 'step_ended' };
const review: Wait = { awaiting: 'review', until: null, ladder: true, ref: null };
const time: Wait = { awaiting: 'time', until: 1, ref: null };
const failure = { code: 'contact_lost', message: 'gone' };

/** The possible states of a step besides its end. */
const told = {
  escalates: { type: 'step_escalated' },
  asks: { type: 'step_waiting', wait: review },
  waits: { type: 'step_waiting', wait: time },
  decided: { type: 'step_woken' },
} as const;

/**
 * `b failed`, `b escalates`, `b/2 succeeded` (item 2), `b/2 short`, `b/2 unsure`, `b goes`, `b has 3`, `b has 3 op2` (one is
 * kept), `b left`, `b/1 again`, …
 */
function eventOf(plan: RunPlan, text: string): RunMachineEvent {
  if (text === 'cancel') return { type: 'cancel_requested' };
  if (text === 'timeout') return { type: 'timed_out', error: timeout };
  if (text === 'pause') return { type: 'paused' };
  if (text === 'resume') return { type: 'resumed' };
  if (text === 'long') return { type: 'history_grew', pressure: 'soft' };
  if (text === 'very long') return { type: 'history_grew', pressure: 'hard' };
  const [unit = '', what = '', count, kept] = text.split(' ');
  const [id, item = 0] = unit.split('/');
  const step = plan.steps.findIndex((one) => one.id === id);
  const key = { step, item: Number(item) };
  const decided = (verdict: StepVerdict) =>
    ({ type: 'decided', steps: [step], verdicts: [verdict] }) as const;
  if (what === 'goes') return decided({ type: 'go' });
  if (what === 'has')
    return decided({ type: 'go', items: Number(count), ...(kept === undefined ? {} : { kept }) });
  const judged = (verdict: RoundVerdict) => ({ type: 'judged', ...key, verdict }) as const;
  if (what === 'again') return judged({ type: 'again', until: null });
  if (what === 'later') return judged({ type: 'again', until: 1 });
  if (what === 'done') return judged({ type: 'done' });
  if (what === 'exhausted') return judged({ type: 'fail', error: failure });
  if (what === 'left') return decided({ type: 'skip' });
  if (what === 'broken') return decided({ type: 'fail', error: failure });
  if (what === 'unsure')
    return { type: 'step_ended', ...key, state: 'succeeded', is_short: true, error: failure };
  if (what === 'short') return { type: 'step_ended', ...key, state: 'succeeded', is_short: true };
  if (what in told) return { ...key, ...told[what as keyof typeof told] };
  const state = what as StepEvent['state'];
  const isFailure = state !== 'succeeded' && state !== 'skipped';
  return { type: 'step_ended', ...key, state, ...(isFailure ? { error: failure } : {}) };
}

function nameOf(plan: RunPlan, { step, item }: UnitKey): string {
  return `${plan.steps[step]?.id}${item === 0 ? '' : `/${item}`}`;
}

function textOf(plan: RunPlan, command: RunCommand): string {
  switch (command.type) {
    case 'decide':
      return `(${command.steps.map((step) => nameOf(plan, { step, item: 0 })).join(' ')})`;
    case 'execute':
      return `+${nameOf(plan, command)}`;
    case 'judge':
      return `=${nameOf(plan, command)}`;
    case 'escalate':
    case 'resume':
      return `^${nameOf(plan, command)}`;
    case 'listen':
      return `?${nameOf(plan, command)}`;
    case 'give_up':
      return `!${nameOf(plan, command)}`;
    case 'call_off':
      return `x${nameOf(plan, command)}`;
    case 'record':
      return command.changes.map((change) => `${nameOf(plan, change)}=${change.state}`).join(' ');
    case 'continue_as_new':
      return 'move on';
    case 'cancel_running':
      return 'stop';
    case 'rest_changed':
      return 'rest';
    case 'cancel_escalations':
      return 'stop ladders';
    case 'finish':
      return `${command.outcome}${command.error === null ? '' : ` (${command.error.message})`}`;
  }
}

function play(plan: RunPlan, script: readonly string[]): { said: string[]; states: string } {
  const { state, commands } = startRun(plan);
  const say = (todo: readonly RunCommand[]): string => todo.map((one) => textOf(plan, one)).join(' ');
  const said = [say(commands), ...script.map((text) => say(applyEvent(state, eventOf(plan, text))))];
  return { said, states: state.steps.join(' ') };
}

/** Follows a run from outside and checks every command against what it knows. */
function watchRun(plan: RunPlan) {
  const ended = new Map<number, string>();
  const running: number[] = [];
  const started = new Set<number>();
  let isHalted = false;
  let finish: RunCommand | null = null;

  const mayStart = (step: number): boolean =>
    plan.steps[step]?.dependencies.every((before) => ended.get(before) === 'succeeded') ?? false;

  const obey = (commands: readonly RunCommand[]): void => {
    for (const command of commands) {
      expect(finish).toBeNull();
      if (command.type === 'finish') finish = command;
      if (command.type !== 'execute') continue;
      expect({ isHalted, isNew: !started.has(command.step), mayStart: mayStart(command.step) }).toEqual({
        isHalted: false,
        isNew: true,
        mayStart: true,
      });
      started.add(command.step);
      running.push(command.step);
    }
    expect(running.length).toBeLessThanOrEqual(plan.max_in_flight);
    const hasRoom = !isHalted && running.length < plan.max_in_flight;
    if (hasRoom) expect(plan.steps.some((_, step) => !started.has(step) && mayStart(step))).toBe(false);
    expect(finish !== null).toBe(running.length === 0);
  };

  const end = (turn: Turn, state: string): number => {
    const [step] = running.splice(turn.pick % running.length, 1);
    ended.set(step as number, state);
    isHalted ||= state !== 'succeeded';
    return step as number;
  };

  return {
    obey,
    end,
    halt: () => {
      isHalted = true;
    },
    finished: () => finish,
    ended,
  };
}

/** Plays a run to its end and gives the answer of a correct machine. */
function playRandomly(plan: RunPlan, trouble: Trouble, turns: Iterator<Turn>) {
  const { state, commands } = startRun(plan);
  const run = watchRun(plan);
  let outcome = 'succeeded';
  let error: unknown = null;
  run.obey(commands);
  for (let ends = 0; run.finished() === null; ends++) {
    if (ends === trouble.timeOutAfter) {
      run.halt();
      if (outcome === 'succeeded') error = timeout;
      if (outcome !== 'cancelled') outcome = 'failed';
      run.obey(applyEvent(state, { type: 'timed_out', error: timeout }));
    }
    if (ends === trouble.cancelAfter) {
      run.halt();
      outcome = 'cancelled';
      run.obey(applyEvent(state, { type: 'cancel_requested' }));
    }
    const turn = nextTurn(turns);
    const end = endOf(turn, trouble);
    const step = run.end(turn, end.state);
    if (end.state !== 'succeeded' && outcome === 'succeeded') {
      outcome = 'failed';
      error = {
        code: 'step_failed',
        message: `step s${step}: ${end.error.message}`,
        details: { step_id: `s${step}`, code: end.error.code },
      };
    }
    run.obey(applyEvent(state, { type: 'step_ended', step, item: 0, ...end }));
  }
  return { state, run, finish: { type: 'finish', outcome, error } };
}

describe('the run machine', () => {
  it.each([...stories, ...raceStories])('%s', (_, plan, script, said, states) => {
    expect(play(plan, script)).toEqual({ said, states });
  });

  it('starts what may start, at once and once; ends once, when nothing runs; forgets no step', () => {
    fc.assert(
      fc.property(anyPlan(300), anyTrouble, anyTurns, (plan, trouble, turns) => {
        const { state, run, finish } = playRandomly(plan, trouble, turns);
        expect(run.finished()).toEqual(finish);
        const rest = finish.outcome === 'cancelled' ? 'cancelled' : 'skipped';
        expect(state.steps).toEqual(plan.steps.map((_, step) => run.ended.get(step) ?? rest));
        if (finish.outcome === 'succeeded') expect(run.ended.size).toBe(plan.steps.length);
      }),
      { numRuns: runs(40) },
    );
  });

  it('answers nothing and changes nothing after the end', () => {
    fc.assert(
      fc.property(anyPlan(20), anyTrouble, anyTurns, fc.nat(20), (plan, trouble, turns, step) => {
        const { state } = playRandomly(plan, trouble, turns);
        const before = structuredClone(state);
        const late: RunMachineEvent[] = [
          { type: 'cancel_requested' },
          { type: 'timed_out', error: timeout },
          { type: 'step_ended', step, item: 0, state: 'failed' },
        ];
        expect(late.flatMap((event) => applyEvent(state, event))).toEqual([]);
        expect(state).toEqual(before);
      }),
    );
  });
});

function finishInOrder(plan: RunPlan): MachineState {
  const { state, commands } = startRun(plan);
  const queue = [...commands];
  for (let at = 0; at < queue.length; at++) {
    const command = queue[at] as RunCommand;
    if (command.type !== 'execute') continue;
    queue.push(...applyEvent(state, { type: 'step_ended', step: command.step, item: 0, state: 'succeeded' }));
  }
  return state;
}

function chain(n: number): RunPlan {
  return planOf(Array.from({ length: n }, (_, at) => (at === 0 ? [] : [at - 1])));
}
function fan(n: number): RunPlan {
  return planOf([
    [],
    ...Array.from({ length: n - 2 }, () => [0]),
    Array.from({ length: n - 2 }, (_, at) => at + 1),
  ]);
}
function web(n: number): RunPlan {
  return planOf(
    Array.from({ length: n }, (_, at) => Array.from({ length: Math.min(at, 5) }, (_, k) => at - 1 - k)),
  );
}

/** Of five rounds; no further ones after one that took less than enough. */
function fastest(plan: RunPlan, enoughMs = 0): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5 && best >= enoughMs; round++) {
    const spentMs = countProcessorMs();
    expect(finishInOrder(plan).steps.every((step) => step === 'succeeded')).toBe(true);
    best = Math.min(best, spentMs());
  }
  return best;
}

describe('the cost of the run machine', () => {
  it.each([
    ['a chain', chain],
    ['a fan-out and fan-in', fan],
    ['five edges a step', web],
  ])('grows with its edges: %s of 20,000 steps takes about ten times one of 2,000', (_, shape) => {
    const enoughMs = 20 * fastest(shape(2_000)) + 150;
    expect(fastest(shape(20_000), enoughMs)).toBeLessThan(enoughMs);
  });
});
