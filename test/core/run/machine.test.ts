import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyEvent,
  type RunCommand,
  type RunMachineEvent,
  type RunState,
  startRun,
} from '../../../src/core/run/machine.ts';
import type { RunPlan } from '../../../src/core/run/plan.ts';
import {
  anyPlan,
  anyTrouble,
  anyTurns,
  aPlan,
  endOf,
  nextTurn,
  planOf,
  type Trouble,
  type Turn,
} from './a-plan.ts';

const timeout = { code: 'run_timeout', message: 'too late' };

type StepEvent = RunMachineEvent & { readonly type: 'step_ended' };
const escalation = {
  escalates: 'step_escalated',
  asks: 'step_in_review',
  decided: 'step_reviewed',
} as const;

/** `b failed`, `b escalates` and the like, `cancel`, `timeout`. */
const eventOf = (plan: RunPlan, text: string): RunMachineEvent => {
  if (text === 'cancel') return { type: 'cancel_requested' };
  if (text === 'timeout') return { type: 'timed_out', error: timeout };
  const [id, what] = text.split(' ') as [string, StepEvent['state'] | keyof typeof escalation];
  const step = plan.steps.findIndex((one) => one.id === id);
  if (what in escalation) return { type: escalation[what as keyof typeof escalation], step };
  const state = what as StepEvent['state'];
  const isFailure = state !== 'succeeded' && state !== 'skipped';
  const error = isFailure ? { error: { code: 'contact_lost', message: 'gone' } } : {};
  return { type: 'step_ended', step, state, ...error };
};

const textOf = (plan: RunPlan, command: RunCommand): string => {
  switch (command.type) {
    case 'execute':
      return `+${plan.steps[command.step]?.id}`;
    case 'escalate':
      return `^${plan.steps[command.step]?.id}`;
    case 'await_review':
      return `?${plan.steps[command.step]?.id}`;
    case 'give_up':
      return `!${plan.steps[command.step]?.id}`;
    case 'cancel_running':
      return 'stop';
    case 'cancel_escalations':
      return 'stop ladders';
    case 'finish':
      return `${command.outcome}${command.error === null ? '' : ` (${command.error.message})`}`;
  }
};

const play = (plan: RunPlan, script: readonly string[]): { said: string[]; states: string } => {
  const { state, commands } = startRun(plan);
  const say = (todo: readonly RunCommand[]): string => todo.map((one) => textOf(plan, one)).join(' ');
  const said = [say(commands), ...script.map((text) => say(applyEvent(state, eventOf(plan, text))))];
  return { said, states: state.steps.join(' ') };
};

const diamond = aPlan(['a', 'b a', 'c a', 'd b c']);
const stories: [string, RunPlan, script: string[], said: string[], states: string][] = [
  ['nothing to do is a success', aPlan([]), [], ['succeeded'], ''],
  [
    'a diamond joins after both arms',
    diamond,
    ['a succeeded', 'c succeeded', 'b succeeded', 'd succeeded'],
    ['+a', '+b +c', '', '+d', 'succeeded'],
    'succeeded succeeded succeeded succeeded',
  ],
  [
    'a failure lets the other arm end, starts nothing and names the step',
    diamond,
    ['a succeeded', 'b failed', 'c succeeded'],
    ['+a', '+b +c', '', 'failed (step b: gone)'],
    'succeeded failed succeeded skipped',
  ],
  [
    'the first failure is the reason',
    diamond,
    ['a succeeded', 'c unknown', 'b failed'],
    ['+a', '+b +c', '', 'failed (step c: gone)'],
    'succeeded failed unknown skipped',
  ],
  [
    'a step that was cancelled alone fails the run',
    aPlan(['a', 'b a']),
    ['a cancelled'],
    ['+a', 'failed (step a: gone)'],
    'cancelled skipped',
  ],
  [
    'a full run starts the next when one ends',
    aPlan(['a', 'b', 'c', 'd a'], 2),
    ['b succeeded', 'a succeeded', 'c succeeded', 'd succeeded'],
    ['+a +b', '+c', '+d', '', 'succeeded'],
    'succeeded succeeded succeeded succeeded',
  ],
  [
    'a cancel stops what runs and waits for it',
    diamond,
    ['a succeeded', 'cancel', 'cancel', 'b cancelled', 'c succeeded'],
    ['+a', '+b +c', 'stop', '', '', 'cancelled'],
    'succeeded cancelled succeeded cancelled',
  ],
  [
    'a run out of time stops what runs and fails',
    aPlan(['a', 'b a']),
    ['timeout', 'a cancelled'],
    ['+a', 'stop', 'failed (too late)'],
    'cancelled skipped',
  ],
  [
    'time that runs out after a failure stops what runs and leaves the reason',
    diamond,
    ['a succeeded', 'b failed', 'timeout', 'c cancelled'],
    ['+a', '+b +c', '', 'stop', 'failed (step b: gone)'],
    'succeeded failed cancelled skipped',
  ],
  [
    'a cancel after a failure is a cancel',
    diamond,
    ['a succeeded', 'b failed', 'cancel', 'c cancelled'],
    ['+a', '+b +c', '', 'stop', 'cancelled (step b: gone)'],
    'succeeded failed cancelled cancelled',
  ],
  [
    'a timeout after a cancel changes nothing',
    aPlan(['a']),
    ['cancel', 'timeout', 'a cancelled'],
    ['+a', 'stop', '', 'cancelled'],
    'cancelled',
  ],
  [
    'a step that escalates goes on with its ladder, and what follows it waits',
    aPlan(['a', 'b a', 'c']),
    ['a escalates', 'c succeeded', 'a succeeded', 'b succeeded'],
    ['+a +c', '^a', '', '+b', 'succeeded'],
    'succeeded succeeded succeeded',
  ],
  [
    'a step in review takes no room, and the run goes on around it',
    aPlan(['a', 'b', 'c', 'd a'], 1),
    ['a escalates', 'a asks', 'b succeeded', 'a decided', 'c succeeded', 'a succeeded', 'd succeeded'],
    ['+a', '^a', '?a +b', '+c', '', '^a', '+d', 'succeeded'],
    'succeeded succeeded succeeded succeeded',
  ],
  [
    'a run whose last step is in review waits',
    aPlan(['a']),
    ['a escalates', 'a asks', 'a decided', 'a asks', 'a decided', 'a failed'],
    ['+a', '^a', '?a', '^a', '?a', '^a', 'failed (step a: gone)'],
    'failed',
  ],
  [
    'a failure gives up what is in review and stops the ladders',
    aPlan(['a', 'b', 'c']),
    ['a escalates', 'b escalates', 'a asks', 'c failed', 'b asks', 'a failed', 'b failed'],
    ['+a +b +c', '^a', '^b', '?a', 'stop ladders !a', '!b', '', 'failed (step c: gone)'],
    'failed failed failed',
  ],
  [
    'a cancel gives up what is in review',
    aPlan(['a', 'b a']),
    ['a escalates', 'a asks', 'cancel', 'a decided', 'a cancelled'],
    ['+a', '^a', '?a', 'stop !a', '', 'cancelled'],
    'cancelled cancelled',
  ],
  [
    'after a failure nothing escalates any more',
    aPlan(['a', 'b']),
    ['a failed', 'b escalates', 'b failed'],
    ['+a +b', '', '!b', 'failed (step a: gone)'],
    'failed failed',
  ],
  [
    'a step that a person skips skips all that waits for it, and nothing else',
    aPlan(['a', 'b a', 'c b d', 'd', 'e d']),
    ['a escalates', 'd succeeded', 'a asks', 'a decided', 'a skipped', 'e succeeded'],
    ['+a +d', '^a', '+e', '?a', '^a', '', 'succeeded'],
    'skipped skipped skipped succeeded succeeded',
  ],
  [
    'an end that comes twice, or of a step that does not run, changes nothing',
    aPlan(['a', 'b a', 'c']),
    ['b succeeded', 'a succeeded', 'a failed', 'c succeeded', 'b succeeded', 'b failed', 'cancel'],
    ['+a +c', '', '+b', '', '', 'succeeded', '', ''],
    'succeeded succeeded succeeded',
  ],
];

/** Follows a run from outside and checks every command against what it knows. */
const watchRun = (plan: RunPlan) => {
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
};

/** Plays a run to its end and answers what a correct machine must say of it. */
const playRandomly = (plan: RunPlan, trouble: Trouble, turns: Iterator<Turn>) => {
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
    run.obey(applyEvent(state, { type: 'step_ended', step, ...end }));
  }
  return { state, run, finish: { type: 'finish', outcome, error } };
};

describe('the run machine', () => {
  it.each(stories)('%s', (_, plan, script, said, states) => {
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
      { numRuns: 150 },
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
          { type: 'step_ended', step, state: 'failed' },
        ];
        expect(late.flatMap((event) => applyEvent(state, event))).toEqual([]);
        expect(state).toEqual(before);
      }),
    );
  });
});

const finishInOrder = (plan: RunPlan): RunState => {
  const { state, commands } = startRun(plan);
  const queue = [...commands];
  for (let at = 0; at < queue.length; at++) {
    const command = queue[at] as RunCommand;
    if (command.type !== 'execute') continue;
    queue.push(...applyEvent(state, { type: 'step_ended', step: command.step, state: 'succeeded' }));
  }
  return state;
};

const chain = (n: number): RunPlan =>
  planOf(Array.from({ length: n }, (_, at) => (at === 0 ? [] : [at - 1])));
const fan = (n: number): RunPlan =>
  planOf([[], ...Array.from({ length: n - 2 }, () => [0]), Array.from({ length: n - 2 }, (_, at) => at + 1)]);
const web = (n: number): RunPlan =>
  planOf(Array.from({ length: n }, (_, at) => Array.from({ length: Math.min(at, 5) }, (_, k) => at - 1 - k)));

const fastest = (plan: RunPlan): number => {
  const times = Array.from({ length: 5 }, () => {
    const start = performance.now();
    expect(finishInOrder(plan).steps.every((step) => step === 'succeeded')).toBe(true);
    return performance.now() - start;
  });
  return Math.min(...times);
};

describe('the cost of the run machine', () => {
  it.each([
    ['a chain', chain],
    ['a fan-out and fan-in', fan],
    ['five edges a step', web],
  ])('grows with its edges: %s of 20,000 steps takes about ten times one of 2,000', (_, shape) => {
    const small = fastest(shape(2_000));
    expect(fastest(shape(20_000))).toBeLessThan(20 * small + 150);
  });
});
