/** A planned rerun as the wire shows it, with the child runs that continue and the number of calls. */
import type { RunIf } from '@capstan/core/contracts/pipeline';
import type { RerunPreview } from '@capstan/core/contracts/run-control';
import type { CompiledStep } from '@capstan/core/definition/compile';
import { inOrder } from '@capstan/core/run/choose-reused';
import { resolveInput } from '../../run-data/evaluation.ts';
import { planContinued, type RepeatedWork, type RerunPlan, type RerunPlanCtx } from './plan.ts';

type CallRange = RerunPreview['calls'];
type ContinuedRun = RerunPreview['runs'][number];

const mostShown = 200;

/** Child runs that continue are planned as their steps will plan them. */
export async function describeRerun(ctx: RerunPlanCtx, plan: RerunPlan): Promise<RerunPreview> {
  const runs: ContinuedRun[] = [];
  const calls = await countCalls(ctx, plan, { above: '', runs });
  return { ...showKept(plan), runs: runs.slice(0, mostShown), calls };
}

function showKept({
  reused,
  skipped,
  executed,
}: RerunPlan): Pick<RerunPreview, 'reused' | 'skipped' | 'executed'> {
  return { reused: [...reused], skipped: [...skipped], executed: executed.map(showWork) };
}

function showWork({ id, reason, total, kept }: RepeatedWork): RerunPreview['executed'][number] {
  if (total === null) return { id, reason };
  const isKept = new Set(kept.map(({ item }) => item));
  const others = Array.from({ length: total }, (_, index) => index + 1).filter((item) => !isKept.has(item));
  return { id, reason, items: { all: total, kept: total - others.length, repeated: formatRanges(others) } };
}

/** @param numbers ascending */
function formatRanges(numbers: readonly number[]): string {
  const ranges: { first: number; last: number }[] = [];
  for (const number of numbers) {
    const range = ranges.at(-1);
    if (range?.last === number - 1) range.last = number;
    else ranges.push({ first: number, last: number });
  }
  return ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

function add(one: CallRange, other: CallRange): CallRange {
  return {
    min: one.min + other.min,
    max: one.max === null || other.max === null ? null : one.max + other.max,
  };
}

const none: CallRange = { min: 0, max: 0 };

interface Listing {
  /** The place of the run, and a separator; empty for the run at the top. */
  readonly above: string;
  /** Receives the child runs that continue. */
  readonly runs: ContinuedRun[];
}

async function countCalls(ctx: RerunPlanCtx, plan: RerunPlan, listing: Listing): Promise<CallRange> {
  const expected = expectSteps(plan);
  let calls = none;
  for (const work of plan.executed) {
    const expectation = expected.get(work.id);
    if (expectation === 'no') continue;
    const own = await countOfStep(ctx, plan, { work, ...listing });
    calls = add(calls, expectation === 'yes' ? own : { ...own, min: 0 });
  }
  return calls;
}

type Likelihood = 'yes' | 'no' | 'maybe';

/** Whether steps happen, and succeed, if every call succeeds; by id. */
function expectSteps({ compiled, reused, executed }: RerunPlan): ReadonlyMap<string, Likelihood> {
  const works = new Map(executed.map((work) => [work.id, work]));
  const expected = new Map<string, Likelihood>(reused.map((id) => [id, 'yes']));
  for (const index of inOrder(compiled)) {
    const { definition, dependencies } = compiled.steps[index] as CompiledStep;
    const work = works.get(definition.id);
    if (work === undefined) continue;
    const before = dependencies.map((one) => expected.get(compiled.steps[one]?.definition.id ?? '') ?? 'no');
    const due = work.isWanted === false ? 'no' : expectDue(definition.run_if, before);
    expected.set(definition.id, due === 'yes' && work.isWanted === null ? 'maybe' : due);
  }
  return expected;
}

function expectDue(rule: RunIf = 'all_succeeded', before: readonly Likelihood[]): Likelihood {
  switch (rule) {
    case 'all_done':
      return 'yes';
    case 'any_failed':
      return 'no';
    case 'all_succeeded':
      return before.includes('no') ? 'no' : before.includes('maybe') ? 'maybe' : 'yes';
    case 'any_succeeded':
      return before.includes('yes') ? 'yes' : before.includes('maybe') ? 'maybe' : 'no';
  }
}

interface CountedStep extends Listing {
  readonly work: RepeatedWork;
}

async function countOfStep(ctx: RerunPlanCtx, plan: RerunPlan, counted: CountedStep): Promise<CallRange> {
  const { step, total, kept, continued } = counted.work;
  const units = step.items === null ? 1 : total === null ? null : total - kept.length;
  const { repeat } = step.definition;
  if (step.kind === 'call' && repeat !== undefined) return { min: 0, max: repeat.max - kept.length };
  if (step.kind === 'call') return { min: units ?? 0, max: units };
  if (step.kind !== 'run') return none;
  let calls: CallRange = { min: 0, max: units === continued.length && repeat === undefined ? 0 : null };
  for (const unit of continued) calls = add(calls, await countOfRun(ctx, plan, { ...counted, unit }));
  return calls;
}

async function countOfRun(
  ctx: RerunPlanCtx,
  { before, values, versions }: RerunPlan,
  { work, above, runs, unit }: CountedStep & { readonly unit: RepeatedWork['continued'][number] },
): Promise<CallRange> {
  const { item, earlier_run_id } = unit;
  const resolved = await resolveInput(values, work.step, item);
  if ('error' in resolved) return none; // the step will fail
  const plan = await planContinued(ctx, {
    project_id: before.project_id,
    earlier_run_id,
    reference: work.step.definition.pipeline ?? '',
    input: resolved.input,
    versions,
  });
  if (plan === null) return { min: 0, max: null };
  const { pipeline, version } = plan.known.definition;
  const place = `${above}${work.id}${item === 0 ? '' : `/${item}`}`;
  runs.push({ run_id: earlier_run_id, place, pipeline, version, ...showKept(plan) });
  return countCalls(ctx, plan, { above: `${place} › `, runs });
}
