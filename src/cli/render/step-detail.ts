/** Everything about one step: what went in, what came out, and for each attempt why it went where. */
import type { Attempt, CachedFrom, StepDetail } from '../../contracts/run.ts';
import { indentJson } from '../watch/run-table.ts';
import { formatDuration, formatSpan, formatState, formatUsd } from './formats.ts';
import type { TableLayout } from './print.ts';
import { renderDecision } from './routing.ts';

export interface StepLayout extends TableLayout {
  readonly now: number;
}

/** Nobody was called: whose result it is. */
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

/** What the step is, in a few words. */
function describeKind({ capability, pipeline, wait, review }: StepDetail): string {
  return capability ?? pipeline ?? (wait === undefined ? undefined : `wait ${wait}`) ?? review ?? '';
}

/** Where else to look. */
function renderLinks({ sub_run_id, reused_from, review_id, items }: StepDetail): string[] {
  return [
    ...(sub_run_id === undefined ? [] : [`run ${sub_run_id}`]),
    ...(reused_from === undefined ? [] : [`result taken from run ${reused_from}`]),
    ...(review_id === undefined ? [] : [`review ${review_id}`]),
    ...(items === undefined
      ? []
      : [
          `items: ${Object.entries(items)
            .map(([state, count]) => `${count} ${state}`)
            .join(', ')}`,
        ]),
  ];
}

/** Of a step with items, the first ones. */
function renderOutput({ output, next_cursor }: StepDetail, style: StepLayout['style']): string[] {
  if (output === undefined) return [];
  const isPart = typeof next_cursor === 'string';
  return [
    style.bold('output'),
    ...indentJson(output),
    ...(isPart ? ['  … and those of more items: --item shows any of them'] : []),
  ];
}

export function renderStepDetail(step: StepDetail, layout: StepLayout): string[] {
  const { style, now } = layout;
  const head = [
    style.bold(step.item === undefined ? step.id : `${step.id}[${step.item}]`),
    `${formatState(step.state, style)}${step.awaiting === undefined ? '' : ` (${step.awaiting})`}`,
    describeKind(step),
    formatSpan(step.started_at, step.finished_at, now),
    formatUsd(step.cost_usd),
  ].filter((part) => part !== '');
  const details = step.error?.details;
  return [
    head.join('  '),
    ...(step.depends_on.length === 0 ? [] : [`after ${step.depends_on.join(', ')}`]),
    ...(step.dispatch === undefined ? [] : [style.dim(`${step.dispatch.how}: ${step.dispatch.message}`)]),
    ...(step.error === undefined ? [] : [`${style.red(step.error.code)}: ${step.error.message}`]),
    ...(details === undefined || details === null ? [] : indentJson(details)),
    ...renderLinks(step),
    ...(step.input === undefined ? [] : [style.bold('input'), ...indentJson(step.input)]),
    ...renderOutput(step, style),
    ...step.attempts.flatMap((attempt, index) => renderAttempt(attempt, index + 1, layout)),
  ];
}
