/** What a plan promises about cost and time, in words that a run cannot belie. */

import type { CapabilitySummary } from '@capstan/core/contracts/capability';
import { mostItems } from '@capstan/core/contracts/limits';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan, PlannedStepView } from '@capstan/core/contracts/plan';
import type { RunSummary } from '@capstan/core/contracts/run';
import { formatDuration, formatUsd } from '../shared/format.ts';

export function describeBudget({ within_ceiling }: Plan, { budget_ceiling_usd }: PipelineDefinition): string {
  if (!within_ceiling) return 'The worst case exceeds the budget';
  return budget_ceiling_usd === undefined
    ? 'No budget set'
    : `Within the budget of ${formatUsd(budget_ceiling_usd)}`;
}

/** A run pays more only to correct an input, which no plan foresees. */
export function describeRange({ cost_usd, limit_usd }: Plan): string {
  const worst = formatUsd(Math.max(cost_usd.worst, limit_usd));
  return `(at least ${formatUsd(cost_usd.min)}, at worst ${worst}, if no input has to be corrected)`;
}

/** Of a step with items: how many of its calls have room in the money; null: all, or their number is unknown. */
export function describeAtOnce({ at_once, items }: PlannedStepView): string | null {
  if (at_once === undefined || typeof items !== 'number' || at_once >= items) return null;
  return `Its money admits ${at_once.toLocaleString('en')} of ${items.toLocaleString('en')} calls at once.`;
}

function countedOnce({ steps }: Plan): readonly string[] {
  return steps.filter(({ items, happens }) => items === null && happens !== 'no').map(({ id }) => id);
}

/** Null when each number of items is known, also in child runs. */
export function describeOpenItems(plan: Plan): string | null {
  const ids = countedOnce(plan);
  if (ids.length === 0 && plan.limit_usd <= plan.cost_usd.worst) return null;
  const where = ids.length === 0 ? 'lists in child runs' : ids.join(', ');
  return `Only the run knows how many items ${where} will have: estimate and time count one of each, the worst case ${mostItems.toLocaleString('en')}.`;
}

/** Steps whose capability has instances, but none with a call: their time is assumed. */
export function assumedSteps(
  { steps }: Pick<Plan, 'steps'>,
  capabilities: readonly Pick<CapabilitySummary, 'name' | 'instances'>[],
): readonly string[] {
  const unknown = new Set(
    capabilities
      .filter(
        ({ instances }) => instances.length > 0 && instances.every(({ duration_ms }) => duration_ms === null),
      )
      .map(({ name }) => name),
  );
  return steps
    .filter(({ capability, duration_ms }) => duration_ms > 0 && unknown.has(capability ?? ''))
    .map(({ id }) => id);
}

/** `No call of publish is known: its time is assumed.`; null for none. */
export function describeAssumed(steps: readonly string[]): string | null {
  if (steps.length === 0) return null;
  return `No call of ${steps.join(', ')} is known: ${steps.length === 1 ? 'its time is' : 'their times are'} assumed.`;
}

function spanOf(values: readonly number[], format: (value: number) => string): string {
  const [least, most] = [format(Math.min(...values)), format(Math.max(...values))];
  return least === most ? least : `${least} to ${most}`;
}

type PastRun = Pick<RunSummary, 'cost_usd' | 'started_at' | 'finished_at'>;

/** `The last 12 runs that succeeded cost $0.042 to $0.052 and took 8.1 s to 12 s.`; null without any. */
export function describePast(runs: readonly PastRun[]): string | null {
  const times = runs.flatMap(({ started_at, finished_at }) =>
    started_at === null || finished_at === null ? [] : [Date.parse(finished_at) - Date.parse(started_at)],
  );
  if (times.length === 0) return null;
  const which = runs.length === 1 ? 'The last run' : `The last ${runs.length} runs`;
  const cost = spanOf(
    runs.map(({ cost_usd }) => cost_usd),
    formatUsd,
  );
  return `${which} that succeeded cost ${cost} and took ${spanOf(times, formatDuration)}.`;
}
