import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findCriticalPath, type TimedStep } from '../../src/graph/dag.ts';

function step(id: string, durationMs: number | null, ...dependencies: number[]): TimedStep {
  return {
    id,
    durationMs,
    dependencies,
  };
}

describe('the critical path', () => {
  it('is the chain that takes longest, wherever its steps are defined', () => {
    const steps = [step('end', 1, 1, 2), step('slow', 5, 3), step('quick', 4, 3), step('start', 2)];
    expect(findCriticalPath(steps)).toEqual({ steps: ['start', 'slow', 'end'], durationMs: 8 });
  });

  it('goes through steps that do not happen without them', () => {
    const steps = [step('a', 3), step('b', null, 0), step('c', 1, 1)];
    expect(findCriticalPath(steps)).toEqual({ steps: ['a', 'c'], durationMs: 4 });
  });

  it('ends with the steps that take no time', () => {
    const steps = [step('a', 3), step('ask', 0, 0)];
    expect(findCriticalPath(steps)).toEqual({ steps: ['a', 'ask'], durationMs: 3 });
  });

  it('of nothing is empty', () => {
    expect(findCriticalPath([step('a', null)])).toEqual({ steps: [], durationMs: 0 });
  });

  it('is a chain of dependencies whose times add up to the end of the last step', () => {
    const anySteps = fc.array(
      fc.record({ durationMs: fc.nat(100), before: fc.array(fc.nat(20), { maxLength: 4 }) }),
      { minLength: 1, maxLength: 20 },
    );
    fc.assert(
      fc.property(anySteps, (drawn) => {
        const steps = drawn.map(({ durationMs, before }, index) =>
          step(`s${index}`, durationMs, ...new Set(before.filter((at) => at < index))),
        );
        const ends: number[] = [];
        for (const { durationMs, dependencies } of steps)
          ends.push(Math.max(0, ...dependencies.map((at) => ends[at] ?? 0)) + (durationMs ?? 0));
        const path = findCriticalPath(steps);
        const chain = path.steps.map((id) => steps[Number(id.slice(1))] as TimedStep);
        expect(path.durationMs).toBe(Math.max(...ends));
        expect(chain.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0)).toBe(path.durationMs);
        for (const [at, { dependencies }] of chain.entries()) {
          if (at > 0) expect(dependencies).toContain(Number(chain[at - 1]?.id.slice(1)));
        }
      }),
    );
  });
});
