import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan } from '@capstan/core/contracts/plan';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { capabilitiesQuery } from '../api/capabilities.ts';
import { toGraph, withPlan } from '../graph/definition-graph.ts';
import { GraphView } from '../graph/graph-view.tsx';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import {
  assumedSteps,
  describeAssumed,
  describeAtOnce,
  describeBudget,
  describeOpenItems,
  describeRange,
} from './plan-model.ts';

export interface PlanViewProps {
  readonly plan: Plan;
  readonly definition: PipelineDefinition;
  /** What such runs cost and took so far. */
  readonly past?: string | null;
}

/** What a run would do and cost now, without a call; the critical path is thick. */
export function PlanView({ plan, definition, past = null }: PlanViewProps): ReactElement {
  const assumed = assumedSteps(plan, useQuery(capabilitiesQuery()).data?.items ?? []);
  const { nodes, edges } = withPlan(toGraph(definition), plan, assumed);
  const guess = describeAssumed(assumed);
  const open = describeOpenItems(plan);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-x-6 gap-y-1 text-sm">
        <span>
          <span className="text-muted">Estimate:</span>{' '}
          <strong className="figure">{formatUsd(plan.cost_usd.expected)}</strong>{' '}
          <span className="figure text-muted">{describeRange(plan)}</span>
        </span>
        <span>
          <span className="text-muted">Time:</span>{' '}
          <strong className="figure">{formatDuration(plan.duration_ms)}</strong>
        </span>
        <span className={plan.within_ceiling ? 'text-muted' : 'text-failed'}>
          {describeBudget(plan, definition)}
        </span>
      </div>
      {open === null ? null : (
        <p className="rounded-md bg-waiting-soft px-3 py-2 text-sm text-waiting">{open}</p>
      )}
      {guess === null ? null : <p className="text-sm text-muted">{guess}</p>}
      {past === null ? null : <p className="figure text-sm text-muted">{past}</p>}
      {plan.missing.length === 0 ? null : (
        <p className="flex items-center gap-2 rounded-md bg-waiting-soft px-3 py-2 text-sm text-waiting">
          <Icon name="triangle-alert" size={15} />
          No instance is registered for {plan.missing.join(', ')}. These steps will wait or fail.
          <Link to="/capabilities" className="ml-auto underline">
            Fleet
          </Link>
        </p>
      )}
      <div className="overflow-hidden rounded-lg border border-line bg-sunken/50">
        <GraphView
          nodes={nodes}
          edges={edges}
          critical={plan.critical_path.steps}
          mostHeight="min(26rem, 60dvh)"
        />
      </div>
      <ul className="divide-y divide-line rounded-lg border border-line bg-surface text-sm">
        {plan.steps
          .map((step) => ({ ...step, atOnce: describeAtOnce(step) }))
          .map(({ id, reason, happens, dispatch, atOnce }) => (
            <li key={id} className="flex flex-wrap gap-x-3 px-4 py-2">
              <span className="w-40 shrink-0 font-medium">{id}</span>
              <span className="min-w-0 flex-1 break-words text-muted">
                {happens === 'unknown' ? 'Conditional. ' : ''}
                {reason}
                {atOnce === null ? '' : `. ${atOnce}`}
              </span>
              {dispatch === undefined ? null : (
                <span className="w-full break-words text-xs text-muted sm:pl-43">
                  {dispatch.how}: {dispatch.message}
                </span>
              )}
            </li>
          ))}
      </ul>
    </div>
  );
}
