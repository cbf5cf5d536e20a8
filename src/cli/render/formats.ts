/** Money, durations, sizes, ages, states and counts of rows for people. */
import type { CostModel, Instance, InstanceState } from '@capstan/core/contracts/capability';
import type { ReviewState } from '@capstan/core/contracts/review';
import type { RunState, RunSummary } from '@capstan/core/contracts/run';
import type { AttemptState, StepState } from '@capstan/core/contracts/run-step';
import { describeDrain } from '@capstan/core/fleet/instance-states';
import { formatUsd } from '@capstan/core/money/nano-usd';
import { countEnded, countSucceeded } from '@capstan/core/run/ended-steps';
import { type ConditionKind, conditionOfRun, toSentence } from '@capstan/core/run/run-status';
import type { Colour, Style } from './print.ts';

export { formatUsd };

/** The API uses 0 for no limit. */
export function formatDailyLimit(usd: number): string {
  return usd === 0 ? 'none' : formatUsd(usd);
}

export function formatPrice({ type, rate_usd }: CostModel): string {
  if (type === 'free') return 'free';
  return `${formatUsd(rate_usd)}/${type === 'per_second' ? 's' : 'call'}`;
}

/** `12ms`, `1.2s`, `1m04s`, `2h03m`, `3d04h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  const pair = (unit: number, lesser: number, names: string): string => {
    const rest = Math.floor((seconds % unit) / lesser);
    return `${Math.floor(seconds / unit)}${names[0]}${String(rest).padStart(2, '0')}${names[1]}`;
  };
  if (seconds < 3_600) return pair(60, 1, 'ms');
  return seconds < 86_400 ? pair(3_600, 60, 'hm') : pair(86_400, 3_600, 'dh');
}

/** From one instant to another, or until now; empty before the start. */
export function formatSpan(from: string | null, to: string | null, now: number): string {
  return from === null
    ? ''
    : formatDuration(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)));
}

export function formatAge(at: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(at));
  if (ms < 1_000) return 'now';
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds}s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)}h ago` : `${Math.floor(seconds / 86_400)}d ago`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${power === 0 ? bytes : (bytes / 1_000 ** power).toFixed(1)} ${units[power]}`;
}

// One symbol and one colour for every state, so that a column of them reads at a glance.

export type AnyState = RunState | StepState | InstanceState | AttemptState | ReviewState;

const looks: Readonly<Record<AnyState, readonly [symbol: string, colour: Colour]>> = {
  queued: ['○', 'dim'],
  paused: ['‖', 'yellow'],
  pending: ['○', 'dim'],
  ready: ['◌', 'blue'],
  running: ['●', 'cyan'],
  retrying: ['↻', 'yellow'],
  in_review: ['◍', 'yellow'],
  waiting: ['◔', 'yellow'],
  cancelling: ['◍', 'yellow'],
  succeeded: ['✓', 'green'],
  failed: ['✗', 'red'],
  unknown: ['?', 'red'],
  skipped: ['–', 'dim'],
  reused: ['✓', 'dim'],
  cancelled: ['⊘', 'yellow'],
  up: ['●', 'green'],
  warming: ['◐', 'blue'],
  suspect: ['◐', 'yellow'],
  down: ['✗', 'red'],
  evicted: ['✗', 'dim'],
  quarantined: ['!', 'red'],
  draining: ['◌', 'yellow'],
  deregistered: ['–', 'dim'],
  reserved: ['◌', 'blue'],
  dispatched: ['●', 'cyan'],
  settled: ['✓', 'green'],
  released: ['–', 'dim'],
  lost: ['?', 'red'],
  cached: ['✓', 'dim'],
  open: ['◍', 'yellow'],
  claimed: ['●', 'cyan'],
  resolved: ['✓', 'green'],
  expired: ['✗', 'red'],
};

export function formatState(state: AnyState, style: Style): string {
  const [symbol, colour] = looks[state];
  return style[colour](`${symbol} ${state}`);
}

/** The look of a run's condition, which core/run/run-status.ts derives. */
const conditionLooks: Readonly<Record<ConditionKind, readonly [symbol: string, colour: Colour]>> = {
  failed: looks.failed,
  cancelled: looks.cancelled,
  called_off: looks.cancelled,
  partly: ['!', 'yellow'],
  succeeded: looks.succeeded,
  cancelling: looks.cancelling,
  stalled: ['!', 'red'],
  review: looks.in_review,
  budget: looks.waiting,
  capability: looks.waiting,
  paused: looks.paused,
  retrying: looks.retrying,
  run: looks.waiting,
  slot: looks.waiting,
  retry: looks.retrying,
  callback: looks.waiting,
  event: looks.waiting,
  time: looks.waiting,
  queued: looks.queued,
  running: looks.running,
};

/** Kinds without detail: steps and errors are shown beside them. */
const plainKinds: ReadonlySet<ConditionKind> = new Set(['failed', 'cancelled', 'running']);

/**
 * `◔ Waiting for budget: 4 of 6 items of chapter`; a run that follows another one with the same failure names that one.
 */
export function formatRunState(run: Parameters<typeof conditionOfRun>[0], style: Style): string {
  const { kind, title, detail } = conditionOfRun(run);
  const { follows } = run;
  const other =
    follows === undefined ? detail : `${follows.run_id ?? follows.escalation_id} works on the same failure`;
  const said = kind === 'run' ? other : detail;
  const [symbol, colour] = conditionLooks[kind];
  return style[colour](`${symbol} ${plainKinds.has(kind) ? title : toSentence({ title, detail: said })}`);
}

/** `3/5`: steps that have succeeded, of all. */
export function formatStepCounts(counts: RunSummary['step_counts']): string {
  return `${countSucceeded(counts)}/${countEnded(counts).all}`;
}

/** Rows by table, as text: deleted, or to be deleted. */

const words: Readonly<Record<string, string>> = {
  run: 'runs',
  open_run: 'of them open',
  step: 'steps and items',
  step_revision: 'corrected inputs',
  attempt: 'attempts',
  attempt_choice: 'choices',
  event: 'events',
  escalation: 'escalations',
  review: 'reviews',
  cached_result: 'cached results',
  cached_answer: 'cached answers of direct calls',
  budget: 'budgets of runs',
  job: 'jobs',
  media_file: 'media files',
  media_object: 'media files',
  ledger_entry: 'entries of the ledger',
  audit: 'entries of the audit log',
  schedule: 'schedules',
  webhook: 'webhooks',
  skill: 'skills',
  skill_use: 'uses of skills',
  repair_decision: 'decisions about repairs',
  pipeline_version: 'versions of pipelines',
  pipeline_alias: 'aliases of pipelines',
  model_alias: 'aliases of models',
  definition: 'definitions',
  instance: 'instances of capabilities',
  capability_spec: 'specs of capabilities',
  advice_answer: 'kept answers to requests for advice',
  idempotency: 'kept answers under an Idempotency-Key',
  api_key: 'keys that hold it alone',
};

/** @param most the limit up to which rows were counted */
export function formatCounts(counts: Readonly<Record<string, number>>, most = Infinity): string[] {
  const rows = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([table, count]) => [count >= most ? `${most}+` : String(count), words[table] ?? table] as const);
  const width = Math.max(0, ...rows.map(([count]) => count.length));
  return rows.map(([count, what]) => `  ${count.padStart(width)}  ${what}`);
}

/** Why the instance gets no calls, or only some. */
export function formatReason({
  reason,
  drain,
  breaker: { state, until },
}: Pick<Instance, 'reason' | 'breaker' | 'drain'>): string {
  const texts = drain === undefined ? [] : [describeDrain(drain)];
  if (reason !== undefined) texts.push(reason);
  if (state === 'open') texts.push(`breaker open until ${until}`);
  if (state === 'half_open') texts.push('breaker half-open');
  return texts.join('; ');
}
