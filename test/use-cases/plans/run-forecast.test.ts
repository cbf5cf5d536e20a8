import type { RunIf } from '@capstan/core/contracts/pipeline';
import type { PlannedStep } from '@capstan/core/run/plan';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Condition, rehearseRun } from '../../../src/use-cases/plans/run-forecast.ts';

interface Draft {
  readonly after?: readonly number[];
  readonly run_if?: RunIf;
  readonly condition?: Condition;
  readonly continues?: boolean;
}

function rehearse(drafts: readonly Draft[]) {
  const steps = drafts.map(
    ({ after = [], run_if, condition, continues }, index): PlannedStep => ({
      id: `s${index}`,
      capability: 'concat',
      dependencies: after,
      total_timeout_ms: 1_000,
      ...(run_if === undefined ? {} : { run_if }),
      ...(condition === undefined ? {} : { decides: true }),
      ...(continues === true ? { continues } : {}),
    }),
  );
  return rehearseRun({ steps, max_in_flight: 2 }, (index) => drafts[index]?.condition ?? 'holds');
}

async function words(drafts: readonly Draft[]): Promise<string[]> {
  const { may, usual, sure } = await rehearse(drafts);
  return drafts.map((_, at) => (sure[at] ? 'sure' : usual[at] ? 'usual' : may[at] ? 'may' : 'no'));
}

describe('a rehearsal', () => {
  it('skips the followers of a condition that is false, as a run does', async () => {
    const drafts: Draft[] = [
      {},
      { after: [0], condition: 'fails' },
      { after: [1] },
      { after: [0, 1], run_if: 'any_succeeded' },
      { after: [2], run_if: 'all_done' },
    ];
    expect(await words(drafts)).toEqual(['sure', 'no', 'no', 'sure', 'sure']);
  });

  it('is not sure of the followers of an unknown condition', async () => {
    const drafts: Draft[] = [
      { condition: 'unknown' },
      { after: [0] },
      { after: [1], condition: 'holds' },
      { after: [0], run_if: 'all_done' },
    ];
    expect(await words(drafts)).toEqual(['usual', 'usual', 'usual', 'sure']);
  });

  it('counts the handlers of a failure only where the run continues after one', async () => {
    const drafts: Draft[] = [
      { continues: true },
      {},
      { after: [0], run_if: 'any_failed' },
      { after: [1], run_if: 'any_failed' },
      { after: [2] },
      { condition: 'fails', continues: true },
      { after: [5], run_if: 'any_failed' },
    ];
    expect(await words(drafts)).toEqual(['sure', 'sure', 'may', 'no', 'may', 'no', 'no']);
  });

  it('rejects when a condition cannot be asked', async () => {
    const plan = {
      steps: [{ id: 'a', capability: 'c', dependencies: [], total_timeout_ms: 1, decides: true }],
    };
    await expect(
      rehearseRun({ ...plan, max_in_flight: 1 } as Parameters<typeof rehearseRun>[0], () => {
        throw new RangeError('broken');
      }),
    ).rejects.toThrow('broken');
  });

  it('is sure of nothing that is not usual, and nothing is usual that may not happen', async () => {
    const anyDraft = fc.record({
      before: fc.array(fc.nat(14), { maxLength: 3 }),
      run_if: fc.constantFrom(
        'all_succeeded',
        'any_succeeded',
        'all_done',
        'any_failed',
      ) as fc.Arbitrary<RunIf>,
      condition: fc.constantFrom('holds', 'fails', 'unknown', undefined) as fc.Arbitrary<
        Condition | undefined
      >,
      continues: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(anyDraft, { minLength: 1, maxLength: 14 }), async (drawn) => {
        const drafts = drawn.map(({ before, condition, ...draft }, index) => ({
          ...draft,
          after: [...new Set(before.filter((at) => at < index))],
          ...(condition === undefined ? {} : { condition }),
        }));
        const { may, usual, sure } = await rehearse(drafts);
        for (const at of drafts.keys()) {
          if (sure[at]) expect(usual[at]).toBe(true);
          if (usual[at]) expect(may[at]).toBe(true);
        }
      }),
    );
  });
});
