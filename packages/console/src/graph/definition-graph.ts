/** The graph of a definition, with a plan's forecast of its steps. */

import type { PipelineDefinition, StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Plan } from '@capstan/core/contracts/plan';
import { analyseDefinition, showGraph } from '@capstan/core/definition/compile';
import { enoughOf, kindFieldsOf } from '@capstan/core/definition/step-settings';
import { formatDuration, formatUsd } from '../shared/format.ts';
import type { DrawnEdge } from './drawn-step.ts';
import { describeKind, type NodeFacts } from './node-model.ts';

export interface DrawnGraph {
  readonly nodes: readonly NodeFacts[];
  readonly edges: readonly DrawnEdge[];
}

/** `after the first 2 of 5`, `for each item`, `repeats, at most 9 rounds`: what is not seen in its edges. */
function describeShape({ first, depends_on = [], for_each, repeat }: StepDefinition): string {
  const race = first === 1 ? 'after the first' : `after the first ${first}`;
  const enough = for_each === undefined ? null : enoughOf(for_each);
  return [
    ...(first === undefined ? [] : [`${race} of ${depends_on.length}`]),
    ...(for_each === undefined ? [] : ['for each item']),
    ...(enough === null ? [] : [`${enough.count} ${enough.count === 1 ? 'is' : 'are'} enough`]),
    ...(repeat === undefined ? [] : [`repeats, at most ${repeat.max} rounds`]),
  ].join(', ');
}

export function toGraph(definition: PipelineDefinition): DrawnGraph {
  const nodes = definition.steps.map((step): NodeFacts => {
    const does = describeKind(kindFieldsOf(step));
    return { id: step.id, does, state: null, note: describeShape(step), time: '', money: '', attempts: 0 };
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
