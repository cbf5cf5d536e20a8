import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { createGraph, findCycles, type GraphStep } from '../../src/graph/dag.ts';

function steps(...lines: string[]): GraphStep[] {
  return lines.map((line) => {
    const [id = '', ...depends_on] = line.split(' ');
    return { id, depends_on };
  });
}

function idsOf(definition: readonly GraphStep[], indexes: readonly number[]) {
  return indexes.map((index) => definition[index]?.id).join(' ');
}

const ordered: [GraphStep[], order: string][] = [
  [steps('a', 'b', 'c'), 'a b c'],
  [steps('a b', 'b c', 'c'), 'c b a'],
  [steps('a', 'b c', 'c', 'd'), 'a c b d'],
  [steps('x z', 'y', 'z'), 'y z x'],
  [steps('a', 'b a', 'c a', 'd b c'), 'a b c d'],
  [steps('a a', 'b'), 'b'],
  [steps('a b', 'b a', 'c b', 'd'), 'd'],
  [steps('a nope', 'b a a a'), 'a b'],
];

const cyclic: [GraphStep[], cycles: string[]][] = [
  [steps('a', 'b a'), []],
  [steps('a a'), ['a']],
  [steps('a b', 'b a'), ['a b']],
  [steps('z', 'c a', 'a b', 'b c', 'after c'), ['c a b']],
  [steps('after b', 'b c', 'c b'), ['b c']],
  [steps('a b', 'b a', 'c d', 'd e', 'e c'), ['a b', 'c d e']],
];

/** Steps whose edges all point to earlier places of a hidden order, then shuffled. */
const acyclicSteps = fc
  .array(fc.array(fc.nat(), { maxLength: 4 }), { maxLength: 30 })
  .map((rows) =>
    rows.map((row, at) => ({ id: `s${at}`, depends_on: at === 0 ? [] : row.map((n) => `s${n % at}`) })),
  )
  .chain((all) => fc.shuffledSubarray(all, { minLength: all.length }));

const anySteps = fc
  .array(fc.array(fc.nat(20), { maxLength: 3 }), { maxLength: 20 })
  .map((rows) => rows.map((row, at) => ({ id: `s${at}`, depends_on: row.map((n) => `s${n}`) })));

describe('createGraph', () => {
  it.each(ordered)('orders %j', (definition, order) => {
    expect(idsOf(definition, createGraph(definition).order)).toBe(order);
  });

  it('lists each neighbour once, in definition order', () => {
    const { predecessors, successors } = createGraph(steps('a', 'b', 'c b a b', 'd a'));
    expect({ predecessors, successors }).toEqual({
      predecessors: [[], [], [0, 1], [0]],
      successors: [[2, 3], [2], [], []],
    });
  });

  it('places every step after all it depends on, and always the first defined of the ready ones', () => {
    fc.assert(
      fc.property(acyclicSteps, (definition) => {
        const { order, predecessors } = createGraph(definition);
        const placed = new Set<number>();
        for (const index of order) {
          const ready = [...predecessors.keys()].filter(
            (step) => !placed.has(step) && predecessors[step]?.every((before) => placed.has(before)),
          );
          expect(index).toBe(ready[0]);
          placed.add(index);
        }
        expect(placed.size).toBe(definition.length);
      }),
    );
  });

  it('handles 10,000 steps with 50,000 edges, and a cycle of 10,000, in well under a second each', () => {
    const wide = Array.from({ length: 10_000 }, (_, at) => ({
      id: `s${at}`,
      depends_on: at === 0 ? [] : Array.from({ length: 5 }, (_, n) => `s${(at * 7919 + n * 104_729) % at}`),
    }));
    const ring = wide.map(({ id }, at) => ({ id, depends_on: [`s${(at + 1) % 10_000}`] }));
    const spentMs = countProcessorMs();
    expect(createGraph(wide).order).toHaveLength(10_000);
    expect(findCycles(createGraph(ring))[0]).toHaveLength(10_000);
    expect(spentMs()).toBeLessThan(2_000);
  });
});

describe('findCycles', () => {
  it.each(cyclic)('finds the cycles of %j', (definition, cycles) => {
    expect(findCycles(createGraph(definition)).map((cycle) => idsOf(definition, cycle))).toEqual(cycles);
  });

  it('reports a real cycle exactly when the order leaves steps out', () => {
    fc.assert(
      fc.property(anySteps, (definition) => {
        const graph = createGraph(definition);
        const cycles = findCycles(graph);
        expect(cycles.length > 0).toBe(graph.order.length < definition.length);
        for (const cycle of cycles) {
          expect(new Set(cycle).size).toBe(cycle.length);
          expect(Math.min(...cycle)).toBe(cycle[0]);
          for (const [at, step] of cycle.entries()) {
            expect(graph.predecessors[step]).toContain(cycle[(at + 1) % cycle.length]);
          }
        }
      }),
    );
  });
});
