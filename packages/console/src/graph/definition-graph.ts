/** The graph of a definition, with a plan's forecast of its steps. */

import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan } from '@capstan/core/contracts/plan';
import { analyseDefinition, showGraph } from '@capstan/core/definition/compile';
import { kindFieldsOf } from '@capstan/core/definition/step-settings';
import { formatDuration, formatUsd } from '../shared/format.ts';
import type { DrawnEdge } from './drawn-step.ts';
import { describeKind, type NodeFacts } from './node-model.ts';

export interface DrawnGraph {
  readonly nodes: readonly NodeFacts[];
  readonly edges: readonly DrawnEdge[];
}

export function toGraph(definition: PipelineDefinition): DrawnGraph {
  const nodes = definition.steps.map((step): NodeFacts => {
    const { id, for_each, repeat } = step;
    const does = describeKind(kindFieldsOf(step));
    const rounds = repeat === undefined ? '' : `repeats, at most ${repeat.max} rounds`;
    const note = for_each === undefined ? rounds : 'for each item';
    return { id, does, state: null, note, time: '', money: '', attempts: 0 };
  });
  return { nodes, edges: showGraph(definition, analyseDefinition(definition)).edges };
}

/** Shows the forecast cost and time on each node. @param assumed steps whose time no call has shown */
export function withPlan(
  { nodes, edges }: DrawnGraph,
  plan: Plan,
  assumed: readonly string[] = [],
): DrawnGraph {
  const planned = new Map(plan.steps.map((step) => [step.id, step]));
  const priced = nodes.map((node): NodeFacts => {
    const step = planned.get(node.id);
    if (step === undefined) return node;
    const isMissing = step.capability !== undefined && plan.missing.includes(step.capability);
    return {
      ...node,
      note: isMissing ? 'no instance registered' : step.happens === 'no' ? 'skipped' : node.note,
      time: step.duration_ms === 0 ? '' : assumed.includes(node.id) ? '?' : formatDuration(step.duration_ms),
      money: step.cost_usd.expected === 0 ? '' : formatUsd(step.cost_usd.expected),
    };
  });
  return { nodes: priced, edges };
}
