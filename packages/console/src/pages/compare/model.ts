/** Compares two runs step by step, differences first, with the reasons why they cannot be equal. */

import type { Json } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { isEqual } from '@capstan/core/expression/compare';
import { formatDuration, formatUsd } from '../../shared/format.ts';

export interface ComparedStep {
  readonly id: string;
  readonly left: RunStep | null;
  readonly right: RunStep | null;
  /** The differences: `state`, `instance`, `attempts`, `input`, `cost`, `missing`; for a reused result, `reused`. */
  readonly differs: readonly string[];
}

function tookMs({ started_at, finished_at }: Pick<RunStep, 'started_at' | 'finished_at'>): number | null {
  return started_at === null || finished_at === null
    ? null
    : Date.parse(finished_at) - Date.parse(started_at);
}

/** Times always differ a little; only a step that took twice as long counts. */
function isSlower(left: RunStep, right: RunStep): boolean {
  const [one, other] = [tookMs(left), tookMs(right)];
  if (one === null || other === null) return false;
  return Math.max(one, other) > 1_000 && Math.max(one, other) > 2 * Math.min(one, other);
}

function differencesOf(left: RunStep | null, right: RunStep | null): string[] {
  if (left === null || right === null) return ['missing'];
  if (left.state === 'reused' || right.state === 'reused')
    return left.state === right.state ? [] : ['reused'];
  const found: string[] = [];
  if (left.state !== right.state) found.push('state');
  const isCalled = left.endpoint !== undefined && right.endpoint !== undefined;
  if (isCalled && left.endpoint !== right.endpoint) found.push('instance');
  if (left.attempts !== right.attempts) found.push('attempts');
  if (left.revision !== right.revision) found.push('input');
  if (left.skill_id !== right.skill_id) found.push('skill');
  if (left.cost_usd !== right.cost_usd) found.push('cost');
  if (isSlower(left, right)) found.push('time');
  return found;
}

/** Steps with the most differences first, the rest in the order of the left run. */
export function compareSteps(left: Run, right: Run): readonly ComparedStep[] {
  const others = new Map(right.steps.map((step) => [step.id, step]));
  const known = new Set(left.steps.map(({ id }) => id));
  const pairs = [
    ...left.steps.map((step) => [step, others.get(step.id) ?? null] as const),
    ...right.steps.filter(({ id }) => !known.has(id)).map((step) => [null, step] as const),
  ];
  return pairs
    .map(([one, other]) => ({
      id: one?.id ?? other?.id ?? '',
      left: one,
      right: other,
      differs: differencesOf(one, other),
    }))
    .toSorted((a, b) => b.differs.length - a.differs.length);
}

/** `+$0.02`, `−$0.01`; empty for the same cost. */
export function describeChange(left: number, right: number): string {
  if (left === right) return '';
  return `${right > left ? '+' : '−'}${formatUsd(Math.abs(right - left))}`;
}

/** The sums of both runs, and the difference. */
export function sumUp(left: Run, right: Run) {
  const duration = (run: Run): string => {
    const took = tookMs(run);
    return took === null ? '' : formatDuration(took);
  };
  return {
    costs: [formatUsd(left.cost_usd), formatUsd(right.cost_usd)],
    times: [duration(left), duration(right)],
    change: describeChange(left.cost_usd, right.cost_usd),
  } as const;
}

function compareTimes(left: Run, right: Run): string {
  const [one, other] = [tookMs(left), tookMs(right)];
  if (!one || !other) return '';
  return ` The first took ${formatDuration(one)}, the second ${formatDuration(other)}.`;
}

/** The contents of both, since each run has a job of its own; null while they are unknown. */
export type ComparedJobs = readonly [Json, Json] | null;

/** The reason of their difference, in a sentence, and their durations. */
export function whyNotTheSame(
  left: Run,
  right: Run,
  { steps, jobs }: { readonly steps: readonly ComparedStep[]; readonly jobs: ComparedJobs },
): string {
  if (left.pipeline !== right.pipeline) return 'The runs belong to different pipelines.';
  const causes: string[] = [];
  if (left.version !== right.version) causes.push(`version ${left.version} and ${right.version}`);
  if (jobs !== null && !isEqual(jobs[0], jobs[1])) causes.push('different jobs');
  const count = (difference: string): number =>
    steps.filter(({ differs }) => differs.includes(difference)).length;
  const say = (difference: string, words: string): void => {
    const number = count(difference);
    if (number > 0) causes.push(`${number} ${number === 1 ? 'step' : 'steps'} ${words}`);
  };
  say('reused', 'reused an earlier result');
  say('instance', 'went to another instance');
  say('skill', 'used another skill');
  say('input', 'had another correction');
  const time = compareTimes(left, right);
  return causes.length === 0
    ? `No differences found.${time}`
    : `${causes.length} ${causes.length === 1 ? 'difference' : 'differences'}: ${causes.join(', ')}.${time}`;
}
