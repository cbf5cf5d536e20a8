import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { findRaceRegion, type Race, successorsOf } from '../../src/graph/races.ts';
import { applyEvent, type MachineState, type RunCommand, startRun } from '../../src/run/machine.ts';
import { keyOf, type UnitKey } from '../../src/run/machine-state.ts';
import type { PlannedStep, RunPlan } from '../../src/run/plan.ts';
import { restoreRun, takeSnapshot } from '../../src/run/snapshot.ts';
import { anyPlan, aPlan } from './a-plan.ts';

interface RacePlan {
  readonly plan: RunPlan;
  readonly join: number;
  readonly race: Race;
  readonly region: readonly number[];
}

function regionOf({ steps }: RunPlan, join: number, race: Race): number[] {
  const dependenciesOf = (step: number) => steps[step]?.dependencies ?? [];
  return findRaceRegion({ successors: successorsOf(steps), dependenciesOf }, join, race);
}

/** A plan with one race among the steps that one of them depends on. */
const anyRacePlan: fc.Arbitrary<RacePlan> = fc
  .tuple(anyPlan(24), fc.nat(), fc.nat(), fc.nat())
  .filter(([{ steps }]) => steps.some(({ dependencies }) => dependencies.length > 1))
  .map(([{ steps, max_in_flight }, which, count, fewer]) => {
    const joins = steps.flatMap(({ dependencies }, index) => (dependencies.length > 1 ? [index] : []));
    const join = joins[which % joins.length] as number;
    const all = steps[join]?.dependencies ?? [];
    const of = all.slice(0, Math.max(1, all.length - (fewer % 2)));
    const race = { count: 1 + (count % of.length), of };
    const region = regionOf({ steps, max_in_flight }, join, race);
    const inRegion = new Set(region);
    const planned = steps.map((step, index): PlannedStep => {
      if (index === join) return { ...step, race };
      return inRegion.has(index) ? { ...step, continues: true, is_callable_off: true } : step;
    });
    return { plan: { steps: planned, max_in_flight }, join, race, region };
  });

type Fate = 'succeeded' | 'failed';
/** How a unit ends that was called off. */
type LateEnd = 'cancelled' | 'succeeded' | 'failed';

interface Course {
  readonly picks: readonly number[];
  readonly fates: readonly Fate[];
  readonly late: readonly LateEnd[];
  /** The run continues in a new history whenever it can. */
  readonly isLong: boolean;
}

const anyCourse: fc.Arbitrary<Course> = fc.record({
  picks: fc.array(fc.nat(), { minLength: 30, maxLength: 30 }),
  fates: fc.array(fc.constantFrom('succeeded', 'succeeded', 'succeeded', 'failed'), {
    minLength: 24,
    maxLength: 24,
  }) as fc.Arbitrary<Fate[]>,
  late: fc.array(fc.constantFrom<LateEnd>('cancelled', 'succeeded', 'failed'), {
    minLength: 8,
    maxLength: 8,
  }),
  isLong: fc.boolean(),
});

interface Played {
  readonly state: MachineState;
  readonly begun: readonly string[];
  readonly calledOff: readonly string[];
  readonly begunLate: readonly string[];
  readonly end: RunCommand | null;
}

/** Units that were called off end before the others. */
function play(plan: RunPlan, course: Course, fateOf: (key: UnitKey) => object): Played {
  let { state, commands } = startRun(plan);
  const running: UnitKey[] = [];
  const called: UnitKey[] = [];
  const [begun, calledOff, begunLate]: string[][] = [[], [], []] as [string[], string[], string[]];
  let end: RunCommand | null = null;
  const stopped = new Set<number>();
  const obey = (todo: readonly RunCommand[]): void => {
    for (const command of todo) {
      if (command.type === 'finish') end = command;
      if (command.type === 'decide') {
        const verdicts = command.steps.map(() => ({ type: 'go', items: itemsOf(plan) }) as const);
        obey(applyEvent(state, { type: 'decided', steps: command.steps, verdicts }));
      }
      if (command.type === 'execute') {
        begun?.push(keyOf(command));
        if (stopped.has(command.step) || isLate(state, command.step)) begunLate?.push(keyOf(command));
        running.push({ step: command.step, item: command.item });
      }
      if (command.type === 'call_off') {
        const place = running.findIndex((key) => keyOf(key) === keyOf(command));
        expect(place).toBeGreaterThanOrEqual(0); // M11: it is in flight, and has not been called off
        calledOff?.push(keyOf(command));
        called.push(...running.splice(place, 1));
        stopped.add(command.step);
      }
    }
  };
  obey(commands);
  for (let turn = 0; end === null && turn < 500; turn++) {
    if (course.isLong) obey(applyEvent(state, { type: 'history_grew', pressure: 'soft' }));
    if (course.isLong && running.length + called.length === 0 && end === null) {
      ({ state, commands } = restoreRun(plan, JSON.parse(JSON.stringify(takeSnapshot(state)))));
      obey(commands);
      continue;
    }
    const key = called.shift();
    if (key !== undefined) {
      const late = course.late[turn % course.late.length] as LateEnd;
      obey(applyEvent(state, { type: 'step_ended', ...key, state: late, ...errorOf(late) }));
      continue;
    }
    const [next] = running.splice((course.picks[turn % course.picks.length] ?? 0) % running.length, 1);
    if (next === undefined) throw new Error('a run that neither runs nor ends');
    obey(applyEvent(state, { type: 'step_ended', ...next, ...fateOf(next) } as never));
  }
  return { state, begun: begun ?? [], calledOff: calledOff ?? [], begunLate: begunLate ?? [], end };
}

/** Whether the race that alone needs the step is decided. */
function isLate({ plan, races }: MachineState, step: number): boolean {
  return [...races].some(
    ([join, { isDecided }]) =>
      isDecided && regionOf(plan, join, plan.steps[join]?.race as Race).includes(step),
  );
}

function errorOf(end: string) {
  return end === 'succeeded' ? {} : { error: { code: 'capability_failed', message: end } };
}

function itemsOf({ steps }: RunPlan): number {
  return Number(steps[0]?.id);
}

/** The largest set, from above: what is before the race, without what another step needs. */
function expectedRegion({ steps }: RunPlan, join: number, { of }: Race): number[] {
  const before = new Set<number>(of);
  for (const step of before) for (const one of steps[step]?.dependencies ?? []) before.add(one);
  const after = successorsOf(steps);
  for (let size = -1; size !== before.size; ) {
    size = before.size;
    for (const step of before) {
      const isFree = after[step]?.every((one) => before.has(one) || (one === join && of.includes(step)));
      if (isFree !== true) before.delete(step);
    }
  }
  return [...before].sort((a, b) => a - b);
}

describe('a race', () => {
  it('needs its steps, and all before them that nothing else needs (R2)', () => {
    fc.assert(
      fc.property(anyRacePlan, ({ plan, join, race, region }) => {
        expect(region).toEqual(expectedRegion(plan, join, race));
      }),
      { numRuns: runs(200) },
    );
  });

  it('begins nothing once it is decided, and calls off only what it alone needs, each once (R1, R2, M11)', () => {
    fc.assert(
      fc.property(anyRacePlan, anyCourse, ({ plan, region }, course) => {
        const fateOf = ({ step }: UnitKey) => {
          const fate = course.fates[step % course.fates.length] as Fate;
          return { state: fate, ...errorOf(fate) };
        };
        const { calledOff, begunLate, begun, end } = play(plan, course, fateOf);
        expect(end).not.toBeNull();
        expect(begunLate).toEqual([]);
        expect(new Set(begun).size).toBe(begun.length);
        expect(new Set(calledOff).size).toBe(calledOff.length);
        expect(calledOff.filter((name) => !region.includes(Number(name.split('/')[0])))).toEqual([]);
      }),
      { numRuns: runs(200) },
    );
  });

  it('ends as it does whatever becomes of what was called off, and in one history or several (R3)', () => {
    fc.assert(
      fc.property(anyRacePlan, anyCourse, fc.boolean(), ({ plan, region }, course, isLong) => {
        const fateOf = ({ step }: UnitKey) => {
          const fate = course.fates[step % course.fates.length] as Fate;
          return { state: fate, ...errorOf(fate) };
        };
        const others = (played: Played) => {
          const isOther = (name: string) => !region.includes(Number(name.split('/')[0]));
          const states = played.state.steps.filter((_, step) => !region.includes(step));
          return { end: played.end, begun: played.begun.filter(isOther), states };
        };
        const plain = { ...course, late: ['cancelled'] as const };
        const expected = others(play(plan, plain, fateOf));
        for (const late of ['succeeded', 'failed', 'cancelled'] as const)
          expect(others(play(plan, { ...plain, late: [late] }, fateOf))).toEqual(expected);
        const { end } = play(plan, { ...plain, isLong }, fateOf);
        expect((end as { outcome?: string } | null)?.outcome).toBe(
          (expected.end as { outcome?: string } | null)?.outcome,
        );
      }),
      { numRuns: runs(150) },
    );
  });
});

describe('what is called off', () => {
  const race = { count: 1, of: [0, 1] };
  const planOfTwo = (steps: readonly string[], more: Partial<PlannedStep> = {}): RunPlan => {
    const plan = aPlan(steps);
    const continues = { continues: true, ...more } as const;
    return {
      ...plan,
      steps: plan.steps.map((step) => (step.id === 'j' ? { ...step, race } : { ...step, ...continues })),
    };
  };
  const end = (step: number, state: 'succeeded' | 'failed') =>
    ({ type: 'step_ended', step, item: 0, state }) as const;

  it('names the winners', () => {
    const { state } = startRun(planOfTwo(['a', 'b', 'j a b']));
    const why = { code: 'enough', message: '1 of 2 steps were enough for j' };
    expect(applyEvent(state, end(1, 'succeeded'))).toEqual([
      { type: 'call_off', step: 0, item: 0, why },
      { type: 'execute', step: 2, item: 0 },
    ]);
  });

  it('names the step that has ended without its race, also where its end is recorded or a wait given up', () => {
    const { state } = startRun({ ...planOfTwo(['a', 'b', 'p', 'j a b p']), max_in_flight: 2 });
    const why = { code: 'not_enough', message: 'j, which needed it, has ended' };
    const wait = { awaiting: 'time', until: 1, ref: null } as const;
    applyEvent(state, { type: 'step_waiting', step: 0, item: 0, wait });
    expect(applyEvent(state, end(2, 'failed'))).toEqual(
      [
        { type: 'record', changes: [{ step: 3, item: 0, state: 'skipped' }] },
        { type: 'call_off', step: 1, item: 0, why },
        { type: 'give_up', step: 0, item: 0, wait, why },
      ].toSorted((one, other) => Number('step' in one && one.step) - Number('step' in other && other.step)),
    );
    const begun = startRun({ ...planOfTwo(['a', 'b a', 'p', 'j a b p']), max_in_flight: 2 });
    expect(applyEvent(begun.state, end(2, 'failed'))).toContainEqual({
      type: 'record',
      changes: [{ step: 1, item: 0, state: 'cancelled', error: why }],
    });
  });
});

const anyItems = fc.record({
  fates: fc.array(fc.constantFrom('good', 'short', 'failed'), { minLength: 1, maxLength: 20 }),
  enough: fc.integer({ min: 1, max: 6 }),
  max_parallel: fc.integer({ min: 1, max: 8 }),
});

describe('items of which some are enough', () => {
  it('succeed if enough of them count, whatever their order and parallelism; no more begin than run in parallel', () => {
    fc.assert(
      fc.property(anyItems, anyCourse, ({ fates, enough, max_parallel }, course) => {
        const step: PlannedStep = {
          id: String(fates.length),
          capability: 'x',
          dependencies: [],
          total_timeout_ms: 1,
          decides: true,
          is_callable_off: true,
          each: { enough, max_parallel, judges: true },
        };
        const fateOf = ({ item }: UnitKey) => {
          const fate = fates[item - 1];
          if (fate === 'failed') return { state: 'failed', ...errorOf('failed') };
          return { state: 'succeeded', ...(fate === 'short' ? { is_short: true } : {}) };
        };
        const plan = { steps: [step], max_in_flight: 200 };
        const { state, begun, calledOff, begunLate } = play(plan, course, fateOf);
        const isEnough = fates.filter((fate) => fate === 'good').length >= enough;
        expect(state.steps).toEqual([isEnough ? 'succeeded' : 'failed']);
        expect(begunLate).toEqual([]);
        const fan = state.fans.get(0);
        const ended = begun.length - calledOff.length;
        expect(calledOff.length).toBeLessThan(Math.max(1, max_parallel));
        if (isEnough) expect(ended - (fan?.missed ?? 0) + calledOff.length).toBeGreaterThanOrEqual(enough);
      }),
      { numRuns: runs(300) },
    );
  });
});
