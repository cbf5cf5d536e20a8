/**
 * The current state of a run as lines that fit the terminal, in width and height; its output, or its failure and where
 * to look; and all details of one step.
 */

import { isWrongAnswer } from '@capstan/core/call/wrong-answer';
import { parseMediaReference } from '@capstan/core/contracts/media';
import type { Json } from '@capstan/core/contracts/primitives';
import { type Run, terminalRunStates } from '@capstan/core/contracts/run';
import type { Attempt, CachedFrom, RunStep, StepDetail, StepState } from '@capstan/core/contracts/run-step';
import { writeJson } from '@capstan/core/json/text';
import { describeEvent } from '@capstan/core/outside-events/rules';
import { describeDecided } from '@capstan/core/repair/describe-decided';
import { describeAwaited } from '@capstan/core/workflow-names';
import type { Session } from '../client/session.ts';
import { formatDuration, formatRunState, formatSpan, formatState, formatUsd } from './formats.ts';
import { type Columns, cutText, renderRows, type Style, type TableLayout } from './print.ts';
import { renderDecision } from './routing.ts';

interface RunTableLayout extends TableLayout {
  /** Available lines; Infinity without a terminal. */
  readonly height: number;
  readonly now: number;
  /** Progress of the calls in flight, by step. */
  readonly progressOf?: (stepId: string) => string;
}

/** The order in which steps are shown when not all of them fit. */
const urgency: Readonly<Record<StepState, number>> = {
  failed: 0,
  unknown: 0,
  in_review: 1,
  waiting: 1,
  retrying: 1,
  running: 1,
  ready: 2,
  succeeded: 3,
  cancelled: 3,
  reused: 3,
  pending: 4,
  skipped: 5,
};

function compareUrgency(a: RunStep, b: RunStep): number {
  return (
    urgency[a.state] - urgency[b.state] || Date.parse(b.finished_at ?? '0') - Date.parse(a.finished_at ?? '0')
  );
}

/** Where the step runs: on an instance, as items, as a child run, or nowhere. */
function describePlace({ endpoint, items, sub_run_id, cached, state }: RunStep): string {
  if (items !== undefined)
    return `${describeItems(items)}${cached === undefined ? '' : `, ${cached} cached`}`;
  if (cached !== undefined && state === 'succeeded') return 'cached';
  return endpoint?.replace(/^https?:\/\//, '') ?? sub_run_id ?? '';
}

/** `7 of 10 items done, 1 failed, 2 waiting` */
function describeItems(items: NonNullable<RunStep['items']>): string {
  const count = (...states: StepState[]): number =>
    states.reduce((sum, state) => sum + (items[state] ?? 0), 0);
  const all = Object.values(items).reduce((sum, number) => sum + number, 0);
  const failed = count('failed', 'unknown');
  const done = count('succeeded', 'reused', 'skipped') + failed;
  const others = {
    failed,
    kept: count('reused'),
    waiting: count('waiting'),
    'in review': count('in_review'),
    cancelled: count('cancelled'),
  };
  const named = Object.entries(others).flatMap(([state, number]) =>
    number === 0 ? [] : [`, ${number} ${state}`],
  );
  return `${done} of ${all} items done${named.join('')}`;
}

function describeProgress(step: RunStep, { progressOf }: RunTableLayout): string | undefined {
  return step.state === 'running' ? progressOf?.(step.id) : undefined;
}

function formatStepState({ state, awaiting }: Pick<RunStep, 'state' | 'awaiting'>, style: Style): string {
  return `${formatState(state, style)}${awaiting === undefined ? '' : ` (${awaiting})`}`;
}

/** A child run has costs without attempts. */
function describeCost({ attempts, cost_usd }: RunStep): string {
  return attempts === 0 && cost_usd === 0 ? '' : formatUsd(cost_usd);
}

const stepTable: Columns<RunStep, RunTableLayout> = [
  ['STEP', 'id'],
  ['STATE', (step, { style }) => formatStepState(step, style)],
  [
    'INSTANCE',
    (step, layout) => [describePlace(step), describeProgress(step, layout)].filter(Boolean).join('  '),
    'shrinks',
  ],
  ['ATTEMPT', ({ attempts }) => (attempts === 0 ? '' : String(attempts)), 'right'],
  ['TIME', ({ started_at, finished_at }, { now }) => formatSpan(started_at, finished_at, now), 'right'],
  ['COST', describeCost, 'right'],
  [
    'ERROR',
    ({ error }, { style }) => (error === undefined ? '' : style.red(`${error.code}: ${error.message}`)),
    'shrinks',
  ],
];

function countStates(steps: readonly RunStep[]): string {
  const counts = new Map<StepState, number>();
  for (const { state } of steps) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${state}`).join(', ');
}

/** `● running  name@version  RUN  4.2s  $0.0012` */
export function renderRunHead(run: Run, { style, width, now }: Omit<RunTableLayout, 'height'>): string {
  return cutText(
    [
      formatRunState(run, style),
      `${style.bold(run.pipeline)}@${run.version}`,
      run.run_id,
      formatSpan(run.started_at, run.finished_at, now) || 'not started',
      formatUsd(run.cost_usd),
    ].join('  '),
    width,
  );
}

/** The steps in the order of the definition; if not all fit, the most urgent ones and a count of the rest. */
export function renderSteps(steps: readonly RunStep[], layout: RunTableLayout): string[] {
  const room = Math.max(1, layout.height - 2);
  const shown = new Set(steps.length < room ? steps : steps.toSorted(compareUrgency).slice(0, room));
  const rows = steps.filter((step) => shown.has(step));
  const lines = renderRows(stepTable, rows, layout);
  if (shown.size === steps.length) return lines;
  const rest = steps.filter((step) => !shown.has(step));
  return [...lines, layout.style.dim(cutText(`… ${rest.length} more: ${countStates(rest)}`, layout.width))];
}

/** Every distinct media reference in a value, in order of appearance. */
export function findMediaReferences(value: Json | undefined): string[] {
  const found = new Set<string>();
  const visit = (part: Json | undefined): void => {
    if (typeof part === 'string' && parseMediaReference(part) !== null) found.add(part);
    if (typeof part === 'object' && part !== null) Object.values(part).forEach(visit);
  };
  visit(value);
  return [...found];
}

export function indentJson(value: Json): string[] {
  return writeJson(value, 2)
    .split('\n')
    .map((line) => `  ${line}`);
}

function renderOutput(run: Run, style: Style): string[] {
  if (run.output === undefined) return [];
  const downloads = findMediaReferences(run.output).map((reference) => `  capstan media get ${reference}`);
  const download = downloads.length === 0 ? [] : [style.bold('download'), ...downloads];
  return [style.bold('output'), ...indentJson(run.output), ...download];
}

function hasFailed(step: RunStep): boolean {
  return step.state === 'failed' || step.state === 'unknown';
}

const askAgain = 'a wrong answer is asked for again where the step has retry: {invalid_output: 2}';

function renderFailures(run: Run, style: Style): string[] {
  const steps = run.steps
    .filter(hasFailed)
    .flatMap(({ id, state, error: failure }) => [
      `  ${style.bold(id)}  ${failure === undefined ? state : `${failure.code}: ${failure.message}`}`,
      ...(failure !== undefined && isWrongAnswer(failure) ? [`  ${style.dim(askAgain)}`] : []),
      `  ${style.dim(`capstan show ${run.run_id} --step ${id}`)}`,
    ]);
  const { error } = run;
  const isOfStep = run.steps.some((step) => error?.message === `step ${step.id}: ${step.error?.message}`);
  return [
    ...(error === undefined || isOfStep ? [] : [`${style.red(error.code)}: ${error.message}`]),
    ...steps,
  ];
}

/** The actor and the reason of a cancel. */
function renderCancel({ cancel }: Run): string[] {
  if (cancel === undefined) return [];
  const by = cancel.by === undefined ? '' : ` by ${nameOf(cancel.by)}`;
  return [`cancel asked for${by}${cancel.reason === undefined ? '' : `: ${cancel.reason}`}`];
}

function nameOf({ id, name }: NonNullable<Run['started_by']>): string {
  return name === undefined || name === id ? id : `${name} (${id})`;
}

function renderOutcome(run: Run, style: Style): string[] {
  return [
    ...renderCancel(run),
    ...(run.state === 'succeeded' ? [] : renderFailures(run, style)),
    ...renderOutput(run, style),
    ...(run.links.console === undefined ? [] : [style.dim(run.links.console)]),
  ];
}

/** The origin of a run unless it is a plain start, and its dispatch decisions. */
function renderOrigin({ parent, rerun_of, superseded_by, schedule_id, started_by, labels }: Run): string[] {
  return [
    ...(parent === undefined
      ? []
      : [`part of ${parent.run_id} ${parent.step_id}${parent.item === 0 ? '' : `[${parent.item}]`}`]),
    ...(rerun_of === undefined ? [] : [`rerun of ${rerun_of}`]),
    ...(superseded_by === undefined ? [] : [`repeated as ${superseded_by}`]),
    ...(schedule_id === undefined ? [] : [`started by ${schedule_id}`]),
    ...(started_by === undefined ? [] : [`started by ${nameOf(started_by)}`]),
    ...(Object.keys(labels).length === 0
      ? []
      : [
          `labels ${Object.entries(labels)
            .map(([name, value]) => `${name}=${value}`)
            .join(', ')}`,
        ]),
  ];
}

/** What a person can do about a workflow that cannot make progress. */
function renderStall({ state, stalled, pipeline, run_id }: Run): string[] {
  if (stalled === undefined || terminalRunStates.has(state)) return [];
  const reset = '--type LastWorkflowTask --reapply-exclude Signal --reason stalled';
  const remedy =
    stalled.missing_key === undefined
      ? [
          'It continues by itself when the cause is mended. If the last signal is the cause:',
          `  temporal workflow reset -w ${pipeline}/${run_id} ${reset}`,
        ]
      : ['Add this key for every server and worker. It then continues by itself, within ten minutes.'];
  return [
    `Its workflow cannot make progress since ${stalled.since}: ${stalled.message}`,
    ...remedy,
    `To end it: capstan cancel ${run_id}`,
  ];
}

/** @param withSteps false when every step has already been printed as events */
export function showRun({ print, shell }: Session, run: Run, withSteps: boolean): void {
  const layout = { style: print.style, width: print.width, height: Infinity, now: shell.now() };
  print.line(renderRunHead(run, layout));
  if (withSteps)
    print.lines([
      ...renderOrigin(run).map((line) => print.style.dim(line)),
      '',
      ...renderSteps(run.steps, layout),
      '',
    ]);
  print.lines(renderStall(run));
  print.lines(renderOutcome(run, print.style));
}

// One step: its input, its output, and the routing decision of each attempt.

export interface StepLayout extends TableLayout {
  readonly now: number;
}

/** The origin of a cached result. */
function describeOrigin({ run_id, step_id, item, saved_usd }: CachedFrom): string {
  const step = item === undefined ? step_id : `${step_id}[${item}]`;
  return `from step ${step} of ${run_id}, saved ${formatUsd(saved_usd)}`;
}

function renderAttempt(attempt: Attempt, number: number, layout: StepLayout): string[] {
  const { style } = layout;
  const cost = `${formatUsd(attempt.cost_usd)}${attempt.certainty === 'estimated' ? ' (estimated)' : ''}`;
  const head = [
    style.bold(`attempt ${number}`),
    formatState(attempt.state, style),
    attempt.cached_from === undefined ? attempt.endpoint : describeOrigin(attempt.cached_from),
    attempt.duration_ms === null ? '' : formatDuration(attempt.duration_ms),
    cost,
    attempt.ambiguity ?? '',
  ].filter((part) => part !== '');
  const { error } = attempt;
  const failure = error === undefined ? [] : [`${style.red(error.code)}: ${error.message}`];
  const decision =
    attempt.decision === null
      ? [style.dim('why it was chosen is no longer kept')]
      : renderDecision(attempt.decision, { style, width: layout.width - 2 });
  return [head.join('  '), ...[...failure, ...decision].map((line) => `  ${line}`)];
}

/** A short description of the step's kind. */
function describeKind(step: StepDetail): string {
  const { capability, pipeline, pipeline_version, wait, review, event, set, open_wait } = step;
  if (event !== undefined) return describeEvent({ name: event, key: open_wait?.event_key ?? '' });
  if (set !== undefined) return `set ${set}`;
  if (pipeline_version !== undefined) return `${pipeline}, version ${pipeline_version}`;
  return capability ?? pipeline ?? (wait === undefined ? undefined : `wait ${wait}`) ?? review ?? '';
}

/** Links to related runs, reviews, skills and items. */
function renderLinks({
  sub_run_id,
  reused_from,
  review_id,
  skill_id,
  as_decided,
  items,
}: StepDetail): string[] {
  const corrected = [skill_id, describeDecided(as_decided)].filter((part) => part != null).join(', ');
  return [
    ...(sub_run_id === undefined ? [] : [`run ${sub_run_id}`]),
    ...(reused_from === undefined ? [] : [`result taken from run ${reused_from}`]),
    ...(review_id === undefined ? [] : [`review ${review_id}`]),
    ...(corrected === '' ? [] : [`corrected by ${corrected}`]),
    ...(items === undefined
      ? []
      : [
          `items: ${Object.entries(items)
            .map(([state, count]) => `${count} ${state}`)
            .join(', ')}`,
        ]),
  ];
}

/** The first items, for a step with items. */
function renderStepOutput({ output, next_cursor }: StepDetail, style: StepLayout['style']): string[] {
  if (output === undefined) return [];
  const isPart = typeof next_cursor === 'string';
  return [
    style.bold('output'),
    ...indentJson(output),
    ...(isPart ? ['  … and those of more items: --item shows any of them'] : []),
  ];
}

function describeWait({ awaiting, open_wait }: StepDetail): string[] {
  if (awaiting === undefined || open_wait === undefined) return [];
  const { since, until } = open_wait;
  const limit = until === null ? 'without a limit' : `until ${until}`;
  return [`waits for ${describeAwaited({ awaiting, ref: null })} since ${since}, ${limit}`];
}

export function renderStepDetail(step: StepDetail, layout: StepLayout): string[] {
  const { style, now } = layout;
  const head = [
    style.bold(step.item === undefined ? step.id : `${step.id}[${step.item}]`),
    formatStepState(step, style),
    describeKind(step),
    formatSpan(step.started_at, step.finished_at, now),
    formatUsd(step.cost_usd),
  ].filter((part) => part !== '');
  const details = step.error?.details;
  return [
    head.join('  '),
    ...describeWait(step),
    ...(step.depends_on.length === 0 ? [] : [`after ${step.depends_on.join(', ')}`]),
    ...(step.dispatch === undefined ? [] : [style.dim(`${step.dispatch.how}: ${step.dispatch.message}`)]),
    ...(step.error === undefined ? [] : [`${style.red(step.error.code)}: ${step.error.message}`]),
    ...(details === undefined || details === null ? [] : indentJson(details)),
    ...renderLinks(step),
    ...(step.input === undefined ? [] : [style.bold('input'), ...indentJson(step.input)]),
    ...renderStepOutput(step, style),
    ...step.attempts.flatMap((attempt, index) => renderAttempt(attempt, index + 1, layout)),
  ];
}
