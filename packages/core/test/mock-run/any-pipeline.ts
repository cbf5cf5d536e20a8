/** Random pipelines whose outcome is known beforehand, and the mocks that make it so. */
import fc from 'fast-check';
import type { DecidedRoute } from '../../src/contracts/decision.ts';
import type { PipelineDefinition, RunIf, StepDefinition } from '../../src/contracts/pipeline.ts';
import type { Mocks } from '../../src/mock-run/mocks.ts';

/** One call: whether it fails, and how long it takes. */
export interface Task {
  readonly fails: boolean;
  /** Tens of milliseconds. */
  readonly takes: number;
}

export interface RandomStep {
  readonly id: string;
  readonly needs: readonly string[];
  readonly when: boolean | null;
  readonly run_if: RunIf | undefined;
  readonly continues: boolean;
  /** A call, a pause, or a call per item. */
  readonly does: Task | 'pause' | readonly Task[];
  readonly tolerate: number;
  readonly max_parallel: number | undefined;
  readonly dispatch: 'queued' | 'inline' | 'auto';
  /** Its first call fails, and the next one does as scripted: of calls without items. */
  readonly stumbles: boolean;
}

const slowest = 3;

function anyTask(failuresPerMille: number): fc.Arbitrary<Task> {
  return fc.record({
    fails: fc.nat(999).map((luck) => luck < failuresPerMille),
    takes: fc.nat(slowest),
  });
}

function anyDoing(failuresPerMille: number): fc.Arbitrary<RandomStep['does']> {
  return fc.oneof(
    { weight: 6, arbitrary: anyTask(failuresPerMille) },
    { weight: 1, arbitrary: fc.constant('pause' as const) },
    { weight: 2, arbitrary: fc.array(anyTask(failuresPerMille), { maxLength: 6 }) },
  );
}

function anyRow(failuresPerMille: number, fatal: boolean) {
  return fc.record({
    needs: fc.array(fc.nat(), { maxLength: 4 }),
    when: fc.constantFrom(null, null, null, true, false),
    run_if: fc.constantFrom<RunIf | undefined>(
      ...([undefined, undefined, 'all_succeeded', 'any_succeeded', 'all_done', 'any_failed'] as const),
    ),
    continues: fatal ? fc.nat(9).map((luck) => luck > 0) : fc.constant(true),
    does: anyDoing(failuresPerMille),
    tolerate: fc.nat(2),
    max_parallel: fc.constantFrom(undefined, 1, 2),
    dispatch: fc.constantFrom('queued' as const, 'inline' as const, 'auto' as const, 'auto' as const),
    stumbles: fc.nat(9).map((luck) => luck === 0),
  });
}

/** Acyclic; steps may be in the file before those they need. */
export function anySteps(
  maxSteps: number,
  { fatal }: { readonly fatal: boolean },
): fc.Arbitrary<RandomStep[]> {
  return fc
    .constantFrom(0, 50, 300)
    .chain((failures) =>
      fc.array(anyRow(failures, fatal), { minLength: 1, maxLength: maxSteps, size: 'max' }),
    )
    .chain((rows) =>
      fc.tuple(fc.constant(rows), fc.shuffledSubarray([...rows.keys()], { minLength: rows.length })),
    )
    .map(([rows, places]) => {
      const steps: RandomStep[] = [];
      for (const [at, row] of rows.entries()) {
        const needs = at === 0 ? [] : [...new Set(row.needs.map((n) => `s${places[n % at]}`))];
        steps[places[at] as number] = { ...row, id: `s${places[at]}`, needs };
      }
      return steps;
    });
}

function toDefinition(step: RandomStep): StepDefinition {
  const { id, needs, when, run_if, continues, does, tolerate, max_parallel, dispatch, stumbles } = step;
  const common = {
    id,
    depends_on: [...needs],
    on_error: continues ? ('continue' as const) : ('fail' as const),
    ...(when === null ? {} : { when: `job.flag == ${when}` }),
    ...(run_if === undefined ? {} : { run_if }),
  };
  if (does === 'pause') return { ...common, wait: '15ms' };
  const max = dispatch === 'auto' || stumbles ? 1 : 0;
  const call = { ...common, capability: 'x', dispatch, retry: { max, initial: '10ms' } };
  if ('takes' in does) return { ...call, input: { ...does } };
  const items = does.map(({ fails, takes }) => ({ fails, takes }));
  const limit = max_parallel === undefined ? {} : { max_parallel };
  return {
    ...call,
    for_each: { items, tolerate, ...limit },
    input: { fails: '{{ item.fails }}', takes: '{{ item.takes }}' },
  };
}

export function toPipeline(steps: readonly RandomStep[]): PipelineDefinition {
  return {
    pipeline: 'random',
    version: '1',
    steps: steps.map(toDefinition),
    output: {},
  };
}

/** As if the calls were known to be short: what leaves it open is dispatched inline. */
export const shortRoutes: readonly DecidedRoute[] = [{ capability: 'x', how: 'inline', code: 'short' }];

export const job = { flag: true };

/** Each call follows its input. */
export const mocks: Mocks = {
  capabilities: {
    x: {
      max_concurrency: 1_000,
      replies: Array.from({ length: slowest + 1 }, (_, takes) => [
        {
          when: `input.takes == ${takes} && input.fails`,
          delay: `${takes * 10}ms`,
          error: { status: 500, message: 'as told' },
        },
        { when: `input.takes == ${takes}`, delay: `${takes * 10}ms` },
      ]).flat(),
    },
  },
};

/** Whether its first call fails. */
export function stumblesAtFirst({ does, stumbles }: RandomStep): boolean {
  return stumbles && does !== 'pause' && 'takes' in does;
}

/** The same, and the first calls of those that stumble fail. */
export function mocksOf(steps: readonly RandomStep[]): Mocks {
  const error = { status: 500, message: 'stumbled' };
  const first = steps.filter(stumblesAtFirst).map(({ id }) => ({ step: id, times: 1, error }));
  const { x } = mocks.capabilities as NonNullable<Mocks['capabilities']>;
  return { capabilities: { x: { ...x, replies: [...first, ...(x?.replies ?? [])] } } };
}
