import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs, seed } from '../../../../test/support/runs.ts';
import { areLast, type InlineFollower, inlineFollowers, isAlone } from '../../src/run/inline-batch.ts';
import { applyEvent, type MachineState, type RunCommand, startRun } from '../../src/run/machine.ts';
import type { PlannedStep, RunPlan } from '../../src/run/plan.ts';
import { anyPlan, aPlan } from './a-plan.ts';

function marked(plan: RunPlan, mark: (step: PlannedStep, index: number) => Partial<PlannedStep>): RunPlan {
  return {
    ...plan,
    steps: plan.steps.map((step, index) => ({ ...step, ...mark(step, index) })),
  };
}
function allInline(lines: readonly string[]): RunPlan {
  return marked(aPlan(lines), () => ({ inline: true }));
}
function executed(commands: readonly RunCommand[]): number[] {
  return commands.flatMap((command) =>
    command.type === 'execute' && command.item === 0 ? [command.step] : [],
  );
}
/** `c<a,b`: c may begin after a and b of its batch. */
function followersOf(plan: RunPlan, most = 8): string {
  const { state, commands } = startRun(plan, false);
  const idOf = (index: number): string => plan.steps[index]?.id ?? '';
  return inlineFollowers(state, executed(commands), most)
    .map(({ step, after }) => `${idOf(step)}<${after.map(idOf).join()}`)
    .join(' ');
}

/** The steps that are named have succeeded; the others are as they are then. */
function withEnded(plan: RunPlan, ...ids: string[]): MachineState {
  const { state } = startRun(plan);
  for (const id of ids) {
    const step = plan.steps.findIndex((one) => one.id === id);
    applyEvent(state, { type: 'step_ended', step, item: 0, state: 'succeeded' });
  }
  return state;
}

const many: Partial<PlannedStep> = { decides: true, each: {} };

describe('units that are executed together', () => {
  it('are alone when no other unit is running or waiting', () => {
    const { state } = startRun(aPlan(['a', 'b']));
    expect([isAlone(state, 2), isAlone(state, 1)]).toEqual([true, false]);
    const wait = { awaiting: 'time', until: 1, ref: null } as const;
    applyEvent(state, { type: 'step_waiting', step: 0, item: 0, wait });
    expect(isAlone(state, 1)).toBe(false);
  });

  it('are followed by steps that also look back at earlier successes', () => {
    const state = withEnded(allInline(['x', 'a x', 'y x a']), 'x');
    expect(inlineFollowers(state, [1], 8)).toEqual([{ step: 2, after: [1] }]);
  });

  it('are followed by no step that may be called off', () => {
    const plan = marked(allInline(['a', 'b a', 'c a']), ({ id }) =>
      id === 'b' ? { is_callable_off: true } : {},
    );
    expect(followersOf(plan)).toBe('');
    expect(followersOf(allInline(['a', 'b a', 'c a']))).toBe('b<a c<a');
  });

  it('are followed by nothing while an item has no room', () => {
    const plan = marked({ ...allInline(['f', 'a', 'b a']), max_in_flight: 2 }, ({ id }) =>
      id === 'f' ? many : {},
    );
    const { state } = startRun(plan);
    expect(inlineFollowers(state, [1], 8)).toEqual([{ step: 2, after: [1] }]);
    applyEvent(state, { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 2 }] });
    expect(inlineFollowers(state, [1], 8)).toEqual([]);
  });

  it.each([
    ...(['succeeded', 'failed', 'unknown', 'skipped', 'reused'] as const).map((end) => [end, true] as const),
    ...(['pending', 'deciding', 'running', 'waiting'] as const).map((end) => [end, false] as const),
  ])('end a run beside a step that is %s: %s', (end, isLast) => {
    const { state } = startRun(allInline(['x', 'a']));
    state.steps[0] = end;
    expect(areLast(state, new Set([1]))).toBe(isLast);
  });

  it('end a run when all others have ended, none of them has items and the run goes well', () => {
    const plan = allInline(['x', 'a x', 'b a']);
    const state = withEnded(plan, 'x');
    expect([[1, 2], [1], [2]].map((steps) => areLast(state, new Set(steps)))).toEqual([true, false, false]);
    applyEvent(state, { type: 'cancel_requested' });
    expect(areLast(state, new Set([1, 2]))).toBe(false);
    const items = startRun(marked(aPlan(['f', 'a']), ({ id }) => (id === 'f' ? many : {}))).state;
    applyEvent(items, { type: 'decided', steps: [0], verdicts: [{ type: 'go', items: 2 }] });
    expect(areLast(items, new Set([0, 1]))).toBe(false);
  });
});

describe('followers of inline steps', () => {
  it.each([
    ['a chain', ['a', 'b a', 'c b', 'd c'], 'b<a c<b d<c'],
    ['steps that look further back too', ['a', 'b a', 'c a b', 'd a b c'], 'b<a c<a,b d<a,b,c'],
    ['what branches and what meets', ['a', 'b a', 'c a', 'd b c'], 'b<a c<a d<b,c'],
    ['those of all that are ready', ['a', 'x', 'b a x', 'y x'], 'b<a,x y<x'],
    ['none after the last', ['a'], ''],
  ])('are %s', (_, lines, expected) => {
    expect(followersOf(allInline(lines))).toBe(expected);
  });

  it('are whole levels, at most as many as are asked for', () => {
    const lines = ['a', ...['b', 'c', 'd', 'e'].map((id, at) => `${id} ${'abcd'[at]}`)];
    expect(followersOf(allInline(lines), 2)).toBe('b<a c<b');
    expect(followersOf(allInline(['a', 'b a', 'c b', 'd b']), 2)).toBe('b<a');
  });

  it.each<[string, Partial<PlannedStep>]>([
    ['queued', { inline: undefined as never }],
    ['conditional', { decides: true }],
    ['after any end', { run_if: 'all_done' }],
    ['many', { each: {} }],
  ])('end before a level with a step that is %s', (_, change) => {
    const plan = marked(allInline(['a', 'b a', 'x a', 'c b', 'y x']), (step) =>
      step.id === 'c' ? change : {},
    );
    expect(followersOf(plan)).toBe('b<a x<a');
  });

  it('are those that the machine executes when each succeeds, in any order that they allow', () => {
    const anyInlinePlan = fc
      .tuple(anyPlan(12), fc.infiniteStream(fc.nat(9)))
      .map(([plan, luck]) =>
        marked(plan, () => ((luck.next().value ?? 0) > 1 ? { inline: true } : { decides: true })),
      );
    let [predicted, closed] = [0, 0];
    fc.assert(
      fc.property(anyInlinePlan, fc.infiniteStream(fc.nat()), (plan, luck) => {
        const { state, commands } = startRun(plan, false);
        const first = executed(commands);
        if (first.length === 0 || !isAlone(state, first.length)) return;
        const followers = inlineFollowers(state, first, plan.steps.length);
        const isLast = areLast(state, new Set([...first, ...followers.map(({ step }) => step)]));
        const begun = playAll(state, { first, followers }, () => luck.next().value ?? 0);
        expect([...begun].sort()).toEqual([...first, ...followers.map(({ step }) => step)].sort());
        expect(state.phase === 'finished').toBe(isLast);
        predicted += followers.length;
        if (isLast) closed += 1;
      }),
      { numRuns: runs(600), seed },
    );
    expect(predicted).toBeGreaterThan(runs(100));
    expect(closed).toBeGreaterThan(runs(40));
  });
});

/** Ends the units of a batch one after the other, by chance. @returns those of the batch that the machine began */
function playAll(
  state: MachineState,
  { first, followers }: { readonly first: readonly number[]; readonly followers: readonly InlineFollower[] },
  chance: () => number,
): Set<number> {
  const members = new Set([...first, ...followers.map(({ step }) => step)]);
  const open = [...first];
  const begun = new Set(first);
  while (open.length > 0) {
    const [step = 0] = open.splice(chance() % open.length, 1);
    const next = executed(applyEvent(state, { type: 'step_ended', step, item: 0, state: 'succeeded' }));
    for (const one of next) {
      if (!members.has(one)) continue;
      begun.add(one);
      open.push(one);
    }
  }
  return begun;
}
