import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan } from '@capstan/core/contracts/plan';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { toGraph, withPlan } from '../graph/definition-graph.ts';
import { GraphView } from '../graph/graph-view.tsx';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';

export interface PlanViewProps {
  readonly plan: Plan;
  readonly definition: PipelineDefinition;
}

function describeBudget({ within_ceiling }: Plan, { budget_ceiling_usd }: PipelineDefinition): string {
  if (!within_ceiling) return 'The worst case exceeds the budget';
  return budget_ceiling_usd === undefined
    ? 'No budget set'
    : `Within the budget of ${formatUsd(budget_ceiling_usd)}`;
}

/** What a run would do and cost now, without a call; the critical path is thick. */
export function PlanView({ plan, definition }: PlanViewProps): ReactElement {
  const { nodes, edges } = withPlan(toGraph(definition), plan);
  const { expected, worst } = plan.cost_usd;
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-x-6 gap-y-1 text-sm">
        <span>
          <span className="text-muted">Estimate:</span>{' '}
          <strong className="figure">{formatUsd(expected)}</strong>{' '}
          <span className="figure text-muted">(up to {formatUsd(worst)})</span>
        </span>
        <span>
          <span className="text-muted">Time:</span>{' '}
          <strong className="figure">{formatDuration(plan.duration_ms)}</strong>
        </span>
        <span className={plan.within_ceiling ? 'text-muted' : 'text-failed'}>
          {describeBudget(plan, definition)}
        </span>
      </div>
      {plan.missing.length === 0 ? null : (
        <p className="flex items-center gap-2 rounded-md bg-waiting-soft px-3 py-2 text-sm text-waiting">
          <Icon name="triangle-alert" size={15} />
          No instance is registered for {plan.missing.join(', ')}. These steps will wait or fail.
          <Link to="/capabilities" className="ml-auto underline">
            Fleet
          </Link>
        </p>
      )}
      <div className="h-[min(26rem,60dvh)] overflow-hidden rounded-lg border border-line bg-sunken/50">
        <GraphView nodes={nodes} edges={edges} critical={plan.critical_path.steps} />
      </div>
      <ul className="divide-y divide-line rounded-lg border border-line bg-surface text-sm">
        {plan.steps.map(({ id, reason, happens, dispatch }) => (
          <li key={id} className="flex flex-wrap gap-x-3 px-4 py-2">
            <span className="w-40 shrink-0 font-medium">{id}</span>
            <span className="min-w-0 flex-1 break-words text-muted">
              {happens === 'unknown' ? 'Conditional. ' : ''}
              {reason}
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
