/** The content of a graph's node: of a run, of a plan, or of a definition. */

import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { conditionOfStep, type RunCondition } from '@capstan/core/run/run-status';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { conditionLooks, type ShownState, type StateLook, stateLooks } from '../shared/state.ts';
import type { DrawnStep } from './drawn-step.ts';

export interface NodeFacts {
  readonly id: string;
  /** The action: a capability, `reel@1.0`, `wait 30s`, `review`, `sets clips`. */
  readonly does: string;
  /** Null outside of a run. */
  readonly state: ShownState | null;
  /** The condition of a run's step, which is more than its state. */
  readonly condition?: RunCondition;
  /** Beside the state: the reason for waiting, the number of items. */
  readonly note: string;
  readonly time: string;
  readonly money: string;
  readonly attempts: number;
}

export function describeKind({
  capability,
  pipeline,
  wait,
  review,
  event,
  set,
}: Omit<DrawnStep, 'id'>): string {
  if (capability !== undefined) return capability;
  if (pipeline !== undefined) return `run ${pipeline}`;
  if (wait !== undefined) return `wait ${wait}`;
  if (review !== undefined) return 'asks a person';
  if (event !== undefined) return `waits for ${event}`;
  return set === undefined ? '' : `sets ${set}`;
}

/** `38 of 120`, failures first: `2 failed, 38 of 120 done`; then those that were cancelled. */
export function describeItems(items: Readonly<Record<string, number>>): string {
  const all = Object.values(items).reduce((sum, count) => sum + count, 0);
  const done = (items.succeeded ?? 0) + (items.skipped ?? 0) + (items.reused ?? 0);
  const failed = (items.failed ?? 0) + (items.unknown ?? 0);
  const { cancelled = 0 } = items;
  return `${failed === 0 ? '' : `${failed} failed, `}${done} of ${all} done${cancelled === 0 ? '' : `, ${cancelled} cancelled`}`;
}

/** `round 3 of at most 20`, or how many there were. */
export function describeRounds(
  items: Readonly<Record<string, number>>,
  max: number,
  isEnded: boolean,
): string {
  const all = Object.values(items).reduce((sum, count) => sum + count, 0);
  return isEnded ? `${all} ${all === 1 ? 'round' : 'rounds'}` : `round ${all} of at most ${max}`;
}

export function passedMs(step: Pick<RunStep, 'started_at' | 'finished_at'>, now: number): number | null {
  if (step.started_at === null) return null;
  return (step.finished_at === null ? now : Date.parse(step.finished_at)) - Date.parse(step.started_at);
}

/** For a step that succeeded or has not begun, the state is more exact: reused, skipped, ready. */
export function lookOfNode({ state, condition }: Pick<NodeFacts, 'state' | 'condition'>): StateLook | null {
  if (state === null) return null;
  if (condition === undefined || condition.kind === 'succeeded' || condition.kind === 'queued') {
    const look = stateLooks[state];
    // Capitalised like the titles of conditions beside it.
    return { ...look, word: look.word.charAt(0).toUpperCase() + look.word.slice(1) };
  }
  return { ...conditionLooks[condition.kind], word: condition.title };
}

/** The word for its condition, and the reason: `Waiting for budget: 2 of 6 done`. */
export function statusOfNode(facts: NodeFacts): string {
  return [lookOfNode(facts)?.word ?? '', facts.note].filter((text) => text !== '').join(': ');
}

/** `200 calls · $0.0955`: the sum of all calls. A single call is not counted. */
export function effortOfNode({ attempts, money }: Pick<NodeFacts, 'attempts' | 'money'>): string {
  return [attempts > 1 ? `${attempts} calls` : '', money].filter((text) => text !== '').join(' · ');
}

/** @param run the causes for which items wait, and the pause, are only known to the run */
export function nodeOfStep(
  step: RunStep,
  now: number,
  run: Partial<Pick<Run, 'awaiting' | 'pause'>> = {},
): NodeFacts {
  const passed = passedMs(step, now);
  const condition = conditionOfStep(step, run);
  return {
    id: step.id,
    does: describeKind(step),
    state: step.state,
    condition,
    note: condition.kind === 'partly' ? noteOf(condition) : (describeParts(step) ?? noteOf(condition)),
    time: passed === null || step.state === 'reused' ? '' : formatDuration(passed),
    money: step.cost_usd === 0 ? '' : formatUsd(step.cost_usd),
    attempts: step.attempts,
  };
}

/** Its items or rounds; null: it has none. */
function describeParts({ items, max_rounds, finished_at }: RunStep): string | null {
  if (items === undefined) return null;
  return max_rounds === undefined
    ? describeItems(items)
    : describeRounds(items, max_rounds, finished_at !== null);
}

/** The title is the node's word already; an error is too long for a node. */
function noteOf({ kind, detail }: RunCondition): string {
  return kind === 'failed' || kind === 'retrying' ? '' : detail;
}
