/** The request of a rerun, its price, and the budget that a run needs to end. */
import type { PlannedStepView } from '@capstan/core/contracts/plan';
import type { Json, JsonObject, Priority } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RerunPreview, RerunRequest } from '@capstan/core/contracts/run-control';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { formatUsd, fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { endedStepStates } from '@capstan/core/run/ended-steps';
import type { CeilingAdvice } from '../../review/ceiling.ts';

export type RerunChoice = 'failed' | 'all' | 'from';

/** Budget and priority of a new run. */
export interface RunTerms {
  readonly budget: 'before' | 'none' | 'other';
  /** The typed budget, for `other`. */
  readonly usd: string;
  readonly priority: 'before' | Priority;
}

export const sameTerms: RunTerms = { budget: 'before', usd: '', priority: 'before' };

/** Unchanged fields are omitted. */
export function toTerms({
  budget,
  usd,
  priority,
}: RunTerms): Pick<RerunRequest, 'budget_ceiling_usd' | 'priority'> {
  return {
    ...(budget === 'none' ? { budget_ceiling_usd: null } : {}),
    ...(budget === 'other' ? { budget_ceiling_usd: Number(usd) } : {}),
    ...(priority === 'before' ? {} : { priority }),
  };
}

/** The fault of typed terms; null for none. */
export function faultOfTerms({ budget, usd }: RunTerms): string | null {
  const isBudget = budget !== 'other' || (usd.trim() !== '' && Number(usd) >= 0);
  return isBudget ? null : 'Give the budget in USD.';
}

/** The expected cost of a rerun by its priority, as far as plans have answered. */
export type RerunPrices = Readonly<Partial<Record<Priority, RerunPrice>>>;

/** What a priority means for the choice of instances, in the order of prices. */
export const instanceWords: Readonly<Record<Priority, string>> = {
  batch: 'the cheapest, however long it takes',
  standard: 'cheap, but not slow',
  interactive: 'the fastest, also dear ones',
};

/** `the cheapest, however long it takes: about $0.004 (batch)` */
export function describeInstances(priority: Priority, prices: RerunPrices = {}): string {
  const price = prices[priority];
  const cost = price === undefined ? '' : `: about ${formatUsd(price.expected)}`;
  return `${instanceWords[priority]}${cost} (${priority})`;
}

/** `, for about $0.004 instead of $0.03 as before`; empty while no price is known. */
export function describePrice(prices: RerunPrices, before: Priority, now: Priority): string {
  const price = prices[now];
  if (price === undefined) return '';
  const former = prices[before];
  const isOther = former !== undefined && former.expected !== price.expected;
  return [
    `, for about ${formatUsd(price.expected)}`,
    price.isOpen ? ' and what items cost whose number is not known yet' : '',
    isOther ? ` instead of ${formatUsd(former.expected)} with the instances of before` : '',
  ].join('');
}

export interface RerunWish {
  readonly choice: RerunChoice;
  readonly from: string;
  readonly version: string;
  /** Null: the job of the original run. */
  readonly job: Json | null;
  readonly terms: RunTerms;
}

/** Unchanged fields are omitted. */
export function toRerunRequest(run: Pick<Run, 'version'>, wish: RerunWish): RerunRequest {
  const { choice, from, version, job, terms } = wish;
  const request: { -readonly [Key in keyof RerunRequest]: RerunRequest[Key] } = { ...toTerms(terms) };
  if (choice === 'failed') request.only_failed = true;
  if (choice === 'from' && from !== '') request.from = [from];
  if (version !== run.version) request.version = version;
  if (job !== null) request.job = job as JsonObject;
  return request;
}

export interface RerunPrice {
  readonly expected: number;
  /** A step has an unknown number of items: the price of one is counted. */
  readonly isOpen: boolean;
}

/** The share of a step's items that are repeated. */
function shareOf(items: RerunPreview['executed'][number]['items']): number {
  return items === undefined || items.all === 0 ? 1 : (items.all - items.kept) / items.all;
}

/** Child runs that continue are counted as if they began again. */
export function priceOfRerun(
  planned: readonly PlannedStepView[],
  executed: RerunPreview['executed'],
): RerunPrice {
  const again = new Set(executed.map(({ id }) => id));
  const steps = planned.filter(({ id, happens }) => again.has(id) && happens !== 'no');
  const shares = new Map(executed.map(({ id, items }) => [id, shareOf(items)]));
  const nano = steps.reduce(
    (sum, { id, cost_usd }) => sum + toNanoUsd(cost_usd.expected * (shares.get(id) ?? 1)),
    0n,
  );
  return { expected: fromNanoUsd(nano), isOpen: steps.some(({ items }) => items === null) };
}

interface RepeatedPart {
  /** `clips/3 › send`: step send of the child run of the third item of clips */
  readonly place: string;
  readonly text: string;
}

/** The steps that run again, with their items, then those of child runs that continue. */
export function listRepeated(preview: RerunPreview): RepeatedPart[] {
  const list = (executed: RerunPreview['executed'], above: string): RepeatedPart[] =>
    executed.map(({ id, reason, items }) => {
      const some = items === undefined ? '' : `${items.all - items.kept} of ${items.all} items, `;
      return { place: `${above}${id}`, text: `${some}${reason}` };
    });
  return [
    ...list(preview.executed, ''),
    ...preview.runs.flatMap(({ place, executed }) => list(executed, `${place} › `)),
  ];
}

export interface BudgetNeed {
  /** The sum for the remaining work, by today's prices. */
  readonly usd: number;
  readonly spentUsd: number;
  readonly left: readonly { readonly id: string; readonly calls: number; readonly eachUsd: number }[];
}

/** Number of calls that a step still needs. */
function callsLeft({ state, items }: RunStep): number {
  if (endedStepStates.has(state)) return 0;
  if (items === undefined) return 1;
  return Object.entries(items).reduce(
    (sum, [of, count]) => sum + (endedStepStates.has(of as RunStep['state']) ? 0 : count),
    0,
  );
}

/** The price of one call: the plan's, or the average of the calls that have ended, whichever is higher. */
function priceOfCall({ items, cost_usd }: PlannedStepView, step: RunStep): number {
  const planned = cost_usd.expected / Math.max(1, items ?? 1);
  const done = step.items === undefined ? 0 : (step.items.succeeded ?? 0);
  return Math.max(planned, done === 0 ? 0 : step.cost_usd / done);
}

/** The spent money, plus the remaining calls of each open step by their price; null when no call costs anything. */
export function needOfRun(
  run: Pick<Run, 'cost_usd' | 'steps'>,
  planned: readonly PlannedStepView[],
): BudgetNeed | null {
  const plans = new Map(planned.map((one) => [one.id, one]));
  const left = run.steps.flatMap((step) => {
    const plan = plans.get(step.id);
    const calls = callsLeft(step);
    if (plan === undefined || plan.happens === 'no' || calls === 0) return [];
    const eachUsd = priceOfCall(plan, step);
    return eachUsd === 0 ? [] : [{ id: step.id, calls, eachUsd }];
  });
  if (left.length === 0) return null;
  const nano = left.reduce(
    (sum, { calls, eachUsd }) => sum + BigInt(calls) * toNanoUsd(eachUsd),
    toNanoUsd(run.cost_usd),
  );
  return { usd: fromNanoUsd(nano), spentUsd: run.cost_usd, left };
}

const mostNamed = 5;

/** `To finish, the run needs about $0.024 in all: $0.008 spent, 4 calls of chapter at $0.004 each.` */
export function describeNeed({ usd, spentUsd, left }: BudgetNeed): string {
  const parts = left
    .slice(0, mostNamed)
    .map(({ id, calls, eachUsd }) =>
      calls === 1
        ? `${id} at ${formatUsd(eachUsd)}`
        : `${calls} calls of ${id} at ${formatUsd(eachUsd)} each`,
    );
  const more = left.length > mostNamed ? [`${left.length - mostNamed} more steps`] : [];
  const sum = [`${formatUsd(spentUsd)} spent`, ...parts, ...more].join(', ');
  return `To finish, the run needs about ${formatUsd(usd)} in all: ${sum}.`;
}

/**
 * The ceiling that lets a run end without another question, as far as plans know: what the refused calls need, and the
 * price of the other steps. Null when the ceiling suffices.
 */
export function suggestCeiling(
  run: Pick<Run, 'run_id' | 'budget_ceiling_usd' | 'steps'>,
  need: BudgetNeed | null,
  advice: CeilingAdvice | null,
): number | null {
  const { budget_ceiling_usd: limit, run_id, steps } = run;
  const isWaiting = (id: string): boolean =>
    advice?.waiting.runId === run_id
      ? id === advice.waiting.stepId
      : steps.some((step) => step.id === id && step.awaiting === 'run');
  const others = (need?.left ?? []).filter(({ id }) => !isWaiting(id));
  const nano =
    advice === null
      ? 0n
      : others.reduce(
          (sum, { calls, eachUsd }) => sum + BigInt(calls) * toNanoUsd(eachUsd),
          toNanoUsd(advice.enoughUsd),
        );
  const usd = Math.max(need?.usd ?? 0, fromNanoUsd(nano));
  return limit !== null && usd > limit ? usd : null;
}
