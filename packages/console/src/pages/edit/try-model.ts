/** A run with mocks as the run page shows runs: the graph with its ends, and the log. */
import type { LocalResult } from '@capstan/core/mock-run/run-locally';
import type { DrawnGraph } from '../../graph/definition-graph.ts';
import { describeItems, type NodeFacts } from '../../graph/node-model.ts';
import { formatDuration, formatUsd } from '../../shared/format.ts';

type TriedStep = LocalResult['steps'][number];

function countItems(steps: readonly TriedStep[], id: string): Record<string, number> | null {
  const counts: Record<string, number> = {};
  for (const step of steps)
    if (step.id === id && step.item > 0) counts[step.state] = (counts[step.state] ?? 0) + 1;
  return Object.keys(counts).length === 0 ? null : counts;
}

export function withResult({ nodes, edges }: DrawnGraph, { steps }: LocalResult): DrawnGraph {
  const wholes = new Map(steps.filter(({ item }) => item === 0).map((step) => [step.id, step]));
  const shown = nodes.map((node): NodeFacts => {
    const step = wholes.get(node.id);
    if (step === undefined) return node;
    const items = countItems(steps, node.id);
    const { started_at_ms: from, finished_at_ms: to } = step;
    return {
      ...node,
      state: step.state,
      note: items === null ? '' : describeItems(items),
      time: from === null || to === null ? '' : formatDuration(to - from),
      money: step.cost_usd === 0 ? '' : formatUsd(step.cost_usd),
      attempts: step.attempts,
    };
  });
  return { nodes: shown, edges };
}

export function describeResult({ outcome, cost_usd, duration_ms, error }: LocalResult): string {
  const why = error === null ? '' : `: ${error.message}`;
  return `${outcome}${why}, after ${formatDuration(duration_ms)} of virtual time, for ${formatUsd(cost_usd)}`;
}

export const faults = ['refused', 'lost', 'late', 'error'] as const;
export type TriedFault = (typeof faults)[number];

const faultReplies: Readonly<Record<TriedFault, string>> = {
  refused: '{ refused: true }',
  lost: '{ times: 1, lost: true }',
  late: '{ delay: 10m }',
  error: '{ error: { status: 422, message: the input is refused } }',
};

/** Adds a first reply that makes a capability fail; existing replies come after it. */
export function withFault(mocks: string, capability: string, fault: TriedFault): string {
  const reply = faultReplies[fault];
  const lines = mocks.split('\n');
  const head = lines.findIndex((line) => new RegExp(`^  ${capability.replaceAll('.', '\\.')}:`).test(line));
  const replies = lines.findIndex((line, index) => index > head && /^ {4}replies:\s*$/.test(line));
  if (head >= 0 && replies >= 0) return lines.toSpliced(replies + 1, 0, `      - ${reply}`).join('\n');
  const top = lines.findIndex((line) => /^capabilities:/.test(line));
  const added = [`  ${capability}:`, '    replies:', `      - ${reply}`];
  if (top < 0) return `${mocks}capabilities:\n${added.join('\n')}\n`;
  return lines.toSpliced(top, 1, 'capabilities:', ...added).join('\n');
}
