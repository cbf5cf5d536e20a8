/**
 * A run is its log: whatever happened to it, the same events in the same order make the same run, from any point on,
 * and when nothing is running its carried state is as good as all of its past.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { applyEvent, type RunCommand, type RunMachineEvent, startRun } from '../../src/run/machine.ts';
import type { MachineState } from '../../src/run/machine-state.ts';
import type { RunPlan } from '../../src/run/plan.ts';
import { planRun } from '../../src/run/plan.ts';
import { type RunSnapshot, restoreRun, takeSnapshot } from '../../src/run/snapshot.ts';
import { anySteps, type RandomStep, toPipeline } from './any-pipeline.ts';

interface Turn {
  readonly pick: number;
  readonly luck: number;
}

/** Endless, from a seed: mulberry32. */
function* turnsOf(seed: number): Generator<Turn> {
  let state = seed;
  const next = (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
  for (;;) yield { pick: next(1_000_000), luck: next(1_000) };
}

const anySeed = fc.integer();

interface Unit {
  readonly step: number;
  readonly item: number;
}

function keyOf({ step, item }: Unit): string {
  return `${step}/${item}`;
}

/** Work in flight outside of the machine. */
class Outside {
  readonly running = new Map<string, Unit & { readonly mayEscalate: boolean }>();
  readonly waiting = new Map<string, Unit>();
  /** The units that have received the end of their wait, which is sent once. */
  readonly woken = new Set<string>();
  readonly deciding: (readonly number[])[] = [];
  readonly begun: string[] = [];
  finish: RunCommand | null = null;
  movesOn = false;

  private begin({ step, item }: Unit, mayEscalate: boolean): void {
    this.waiting.delete(keyOf({ step, item }));
    this.woken.delete(keyOf({ step, item }));
    this.running.set(keyOf({ step, item }), { step, item, mayEscalate });
  }

  obey(commands: readonly RunCommand[]): void {
    for (const command of commands) {
      switch (command.type) {
        case 'decide':
          this.deciding.push(command.steps);
          break;
        case 'execute':
          this.begun.push(keyOf(command));
          this.begin(command, true);
          break;
        case 'resume':
          this.begin(command, true);
          break;
        case 'escalate':
        case 'give_up':
          this.begin(command, false);
          break;
        case 'listen':
          this.waiting.set(keyOf(command), command);
          break;
        case 'finish':
          this.finish = command;
          break;
        case 'continue_as_new':
          this.movesOn = true;
      }
    }
  }
}

const wait = { awaiting: 'time', until: null, ref: null } as const;
const error = { code: 'capability_failed', message: 'as told' };

/** Something that may happen now; null = nothing is left to happen. */
function nextEvent(
  steps: readonly RandomStep[],
  outside: Outside,
  isPaused: boolean,
  { pick, luck }: Turn,
): RunMachineEvent | null {
  if (isPaused && luck < 300) return { type: 'resumed' };
  if (luck < 10) return { type: 'paused' };
  if (luck < 12) return luck === 10 ? { type: 'cancel_requested' } : { type: 'timed_out', error };
  const decided = outside.deciding.shift();
  if (decided !== undefined) return decide(steps, decided);
  const running = [...outside.running.values()];
  const waiting = [...outside.waiting.values()].filter((unit) => !outside.woken.has(keyOf(unit)));
  if (luck % 3 === 0 && waiting.length > 0) return wake(outside, at(waiting, pick));
  if (running.length > 0) {
    const unit = at(running, pick);
    const { mayEscalate } = running[pick % running.length] as (typeof running)[number];
    outside.running.delete(keyOf(unit));
    if (luck < 150) return { type: 'step_waiting', ...unit, wait };
    if (luck < 200 && mayEscalate) return { type: 'step_escalated', ...unit };
    if (luck < 260) return { type: 'step_ended', ...unit, state: 'failed', error };
    return { type: 'step_ended', ...unit, state: luck < 280 ? 'skipped' : 'succeeded' };
  }
  if (waiting.length > 0) return wake(outside, at(waiting, pick));
  return isPaused ? { type: 'resumed' } : null;
}

function wake({ woken }: Outside, unit: Unit): RunMachineEvent {
  woken.add(keyOf(unit));
  return { type: 'step_woken', ...unit };
}

function at(units: readonly Unit[], pick: number): Unit {
  const { step, item } = units[pick % units.length] as Unit;
  return { step, item };
}

function decide(steps: readonly RandomStep[], decided: readonly number[]): RunMachineEvent {
  return {
    type: 'decided',
    steps: decided,
    verdicts: decided.map((index) => {
      const { when, does } = steps[index] as RandomStep;
      if (when === false) return { type: 'skip' };
      return Array.isArray(does) ? { type: 'go', items: does.length } : { type: 'go' };
    }),
  };
}

interface Played {
  readonly log: readonly RunMachineEvent[];
  /** Those that each event led to; the first are those of the beginning. */
  readonly commands: readonly (readonly RunCommand[])[];
  readonly state: MachineState;
  readonly outside: Outside;
}

function play(
  plan: RunPlan,
  steps: readonly RandomStep[],
  turns: Iterator<Turn>,
  rest: (turn: Turn) => boolean = () => false,
): Played {
  let { state, commands: first } = startRun(plan);
  const outside = new Outside();
  const [log, commands]: [RunMachineEvent[], RunCommand[][]] = [[], [first]];
  outside.obey(first);
  const apply = (event: RunMachineEvent): void => {
    log.push(event);
    commands.push(applyEvent(state, event));
    outside.obey(commands.at(-1) as RunCommand[]);
  };
  for (let count = 0; outside.finish === null && count < 20_000; count++) {
    const turn = turns.next().value as Turn;
    const event = nextEvent(steps, outside, state.isPaused, turn);
    if (event === null) break;
    if (rest(turn)) apply({ type: 'history_grew', pressure: 'hard' });
    apply(event);
    if (!outside.movesOn || state.phase !== 'running' || state.inFlight + state.deciding > 0) continue;
    outside.movesOn = false;
    const carried = JSON.parse(JSON.stringify(takeSnapshot(state))) as RunSnapshot;
    ({ state, commands: first } = restoreRun(plan, carried));
    outside.obey(first);
  }
  return { log, commands, state, outside };
}

function planOf(steps: readonly RandomStep[]): RunPlan {
  return planRun(toPipeline(steps));
}

describe('the log of a run', () => {
  it('makes the same run again, up to any of its events and on from there', () => {
    fc.assert(
      fc.property(anySteps(60, { fatal: true }), anySeed, fc.nat(), (steps, seed, cut) => {
        const plan = planOf(steps);
        const { log, commands, state } = play(plan, steps, turnsOf(seed));
        const again = startRun(plan);
        const seen = [again.commands];
        const half = cut % (log.length + 1);
        for (const event of log.slice(0, half)) seen.push(applyEvent(again.state, event));
        // What a replay is made of survives as JSON.
        for (const event of JSON.parse(JSON.stringify(log.slice(half))))
          seen.push(applyEvent(again.state, event));
        expect(seen).toEqual(commands);
        expect(again.state).toEqual(state);
      }),
      { numRuns: runs(25) },
    );
  });

  it('ends in a finish, however things go, and begins every unit once', () => {
    fc.assert(
      fc.property(anySteps(60, { fatal: true }), anySeed, (steps, seed) => {
        const { outside } = play(planOf(steps), steps, turnsOf(seed));
        expect(outside.finish).not.toBeNull();
        expect(new Set(outside.begun).size).toBe(outside.begun.length);
        expect(outside.running.size + outside.waiting.size + outside.deciding.length).toBe(0);
      }),
      { numRuns: runs(25) },
    );
  });

  it('may be cut again and again: the run still begins every unit once, and ends', () => {
    fc.assert(
      fc.property(
        anySteps(60, { fatal: true }),
        anySeed,
        fc.integer({ min: 2, max: 9 }),
        (steps, seed, every) => {
          const { outside, state } = play(
            planOf(steps),
            steps,
            turnsOf(seed),
            ({ pick }) => pick % every === 0,
          );
          expect(outside.finish).not.toBeNull();
          expect(state.phase).toBe('finished');
          expect(new Set(outside.begun).size).toBe(outside.begun.length);
          expect(outside.running.size + outside.waiting.size + outside.deciding.length).toBe(0);
        },
      ),
      { numRuns: runs(25) },
    );
  });
});
