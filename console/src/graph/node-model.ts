/** What a node of a graph says: of a run, of a plan, or of a definition alone. */

import type { RunStep } from '../../../src/contracts/run.ts';
import { formatAmount } from '../shared/money.ts';
import { describeAwaiting, type ShownState } from '../shared/state.ts';
import { formatDuration } from '../shared/time.ts';
import type { DrawnStep } from './drawn-step.ts';

export interface NodeFacts {
  readonly id: string;
  /** What it does: a capability, `reel@1.0`, `wait 30s`, `review`. */
  readonly does: string;
  /** Null where nothing runs. */
  readonly state: ShownState | null;
  /** Beside the state: what it waits for, how many items. */
  readonly note: string;
  readonly time: string;
  readonly money: string;
  readonly attempts: number;
}

export function describeKind({ capability, pipeline, wait, review }: Omit<DrawnStep, 'id'>): string {
  if (capability !== undefined) return capability;
  if (pipeline !== undefined) return `run ${pipeline}`;
  if (wait !== undefined) return `wait ${wait}`;
  return review === undefined ? '' : 'asks a person';
}

/** `38 of 120`, with what went wrong: `38 of 120, 2 failed`. */
export function describeItems(items: Readonly<Record<string, number>>): string {
  const all = Object.values(items).reduce((sum, count) => sum + count, 0);
  const done = (items.succeeded ?? 0) + (items.skipped ?? 0) + (items.reused ?? 0);
  const failed = (items.failed ?? 0) + (items.unknown ?? 0);
  return `${done} of ${all}${failed === 0 ? '' : `, ${failed} failed`}`;
}

export function passedMs(step: Pick<RunStep, 'started_at' | 'finished_at'>, now: number): number | null {
  if (step.started_at === null) return null;
  return (step.finished_at === null ? now : Date.parse(step.finished_at)) - Date.parse(step.started_at);
}

export function nodeOfStep(step: RunStep, now: number): NodeFacts {
  const passed = passedMs(step, now);
  const waits = step.awaiting === undefined ? '' : describeAwaiting([step.awaiting]);
  return {
    id: step.id,
    does: describeKind(step),
    state: step.state,
    note: step.items === undefined ? waits : describeItems(step.items),
    time: passed === null || step.state === 'reused' ? '' : formatDuration(passed),
    money: step.cost_usd === 0 ? '' : formatAmount(step.cost_usd),
    attempts: step.attempts,
  };
}
