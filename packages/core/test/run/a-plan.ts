import fc from 'fast-check';
import type { RunPlan } from '../../src/run/plan.ts';

/** Steps as `id dependency dependency`. */
export function aPlan(lines: readonly string[], max_in_flight = 200): RunPlan {
  const rows = lines.map((line) => line.split(' '));
  const indexOf = new Map(rows.map(([id], index) => [id, index]));
  return planOf(
    rows.map(([, ...dependencies]) => dependencies.map((id) => indexOf.get(id) as number)),
    max_in_flight,
    rows.map(([id = '']) => id),
  );
}

export function planOf(
  dependencies: readonly (readonly number[])[],
  max_in_flight = 200,
  ids: readonly string[] = dependencies.map((_, index) => `s${index}`),
): RunPlan {
  return {
    steps: dependencies.map((list, index) => ({
      id: ids[index] ?? '',
      capability: 'concat',
      dependencies: list,
      total_timeout_ms: 3_600_000,
    })),
    max_in_flight,
  };
}

/** Acyclic, with edges in both directions of the definition's order. */
export function anyPlan(maxSteps: number): fc.Arbitrary<RunPlan> {
  return fc
    .array(fc.array(fc.nat(), { maxLength: 4 }), { maxLength: maxSteps, size: 'max' })
    .chain((rows) =>
      fc.tuple(
        fc.constant(rows),
        fc.shuffledSubarray([...rows.keys()], { minLength: rows.length }),
        fc.integer({ min: 1, max: 40 }),
      ),
    )
    .map(([rows, place, maxInFlight]) => {
      const dependencies: number[][] = rows.map(() => []);
      for (const [at, row] of rows.entries()) {
        const before = new Set(at === 0 ? [] : row.map((n) => place[n % at] as number));
        dependencies[place[at] as number] = [...before];
      }
      return planOf(dependencies, maxInFlight);
    });
}

/** What happens next in a run: which of the running steps ends, and how. */
export interface Turn {
  readonly pick: number;
  /** 0 … 999; low ones are failures. */
  readonly luck: number;
}

export const anyTurns: fc.Arbitrary<fc.Stream<Turn>> = fc.infiniteStream(
  fc.record({ pick: fc.noBias(fc.nat()), luck: fc.noBias(fc.nat(999)) }),
);

export function nextTurn(turns: Iterator<Turn>): Turn {
  return turns.next().value as Turn;
}

/** What goes wrong in a run, and after how many ends of steps. */
export const anyTrouble = fc.record({
  failuresPerThousand: fc.constantFrom(0, 0, 5, 50),
  cancelAfter: fc.option(fc.nat(60), { freq: 2 }),
  timeOutAfter: fc.option(fc.nat(60), { freq: 2 }),
});
export type Trouble = typeof anyTrouble extends fc.Arbitrary<infer T> ? T : never;

const failures = ['failed', 'unknown', 'cancelled'] as const;

export function endOf({ luck }: Turn, { failuresPerThousand }: Trouble) {
  if (luck >= failuresPerThousand) return { state: 'succeeded' } as const;
  const state = failures[luck % 3] ?? 'failed';
  return { state, error: { code: 'contact_lost', message: `ended as ${state}` } };
}
