import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inlineFollowers, isAlone } from '../../../src/core/run/inline-followers.ts';
import { applyEvent, type RunCommand, startRun } from '../../../src/core/run/machine.ts';
import type { PlannedStep, RunPlan } from '../../../src/core/run/plan.ts';
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
function followersOf(plan: RunPlan, most = 8): string {
  return inlineFollowers(startRun(plan, false).state, 0, most)
    .map((index) => plan.steps[index]?.id)
    .join(' ');
}

describe('followers of an inline step', () => {
  it.each([
    ['a chain', ['a', 'b a', 'c b', 'd c'], 'b c d'],
    ['steps that look further back too', ['a', 'b a', 'c a b', 'd a b c'], 'b c d'],
    ['as far as one comes after the other', ['a', 'b a', 'c b', 'd b', 'e c d'], 'b'],
    ['none where two come at once', ['a', 'b a', 'c a'], ''],
    ['none where another is waited for', ['a', 'x', 'b a x'], ''],
    ['none after the last', ['a'], ''],
  ])('are %s', (_, lines, expected) => {
    expect(followersOf(allInline(lines))).toBe(expected);
  });

  it('are as many as are asked for', () => {
    const lines = ['a', ...['b', 'c', 'd', 'e'].map((id, at) => `${id} ${'abcd'[at]}`)];
    expect(followersOf(allInline(lines), 2)).toBe('b c');
  });

  it.each<[string, Partial<PlannedStep>]>([
    ['queued', { inline: undefined as never }],
    ['conditional', { decides: true }],
    ['after any end', { run_if: 'all_done' }],
    ['many', { each: {} }],
  ])('end before a step that is %s', (_, change) => {
    const plan = marked(allInline(['a', 'b a', 'c b']), (step) => (step.id === 'c' ? change : {}));
    expect(followersOf(plan)).toBe('b');
  });

  it('are what the machine executes next, alone, when each succeeds', () => {
    const anyInlinePlan = fc
      .tuple(anyPlan(12), fc.infiniteStream(fc.nat(9)))
      .map(([plan, luck]) =>
        marked(plan, () => ((luck.next().value ?? 0) > 1 ? { inline: true } : { decides: true })),
      );
    const executed = (commands: readonly RunCommand[]): number[] =>
      commands.flatMap((command) => (command.type === 'execute' ? [command.step] : []));
    let predicted = 0;
    fc.assert(
      fc.property(anyInlinePlan, (plan) => {
        const { state, commands } = startRun(plan, false);
        const [first] = executed(commands);
        if (first === undefined || !isAlone(state)) return;
        let last = first;
        for (const next of inlineFollowers(state, first, plan.steps.length)) {
          const more = applyEvent(state, { type: 'step_ended', step: last, item: 0, state: 'succeeded' });
          expect(more).toEqual([{ type: 'execute', step: next, item: 0 }]);
          predicted += 1;
          last = next;
        }
      }),
      { numRuns: 3_000, seed: 20_261_122 },
    );
    expect(predicted).toBeGreaterThan(200);
  });
});
