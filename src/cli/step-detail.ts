/** Everything about one step: what went in, what came out, and for each attempt why it went where. */
import type { Attempt, StepDetail } from '../contracts/run.ts';
import { formatDuration, formatSpan, formatUsd } from './amounts.ts';
import { renderDecision } from './decision.ts';
import { formatState } from './states.ts';
import type { TableLayout } from './table.ts';
import { indentJson } from './watch/outcome.ts';

export interface StepLayout extends TableLayout {
  readonly now: number;
}

const renderAttempt = (attempt: Attempt, number: number, layout: StepLayout): string[] => {
  const { style } = layout;
  const cost = `${formatUsd(attempt.cost_usd)}${attempt.certainty === 'estimated' ? ' (estimated)' : ''}`;
  const head = [
    style.bold(`attempt ${number}`),
    formatState(attempt.state, style),
    attempt.endpoint,
    attempt.duration_ms === null ? '' : formatDuration(attempt.duration_ms),
    cost,
    attempt.ambiguity ?? '',
  ].filter((part) => part !== '');
  const { error } = attempt;
  const failure = error === undefined ? [] : [`${style.red(error.code)}: ${error.message}`];
  const decision = renderDecision(attempt.decision, { style, width: layout.width - 2 });
  return [head.join('  '), ...[...failure, ...decision].map((line) => `  ${line}`)];
};

export const renderStepDetail = (step: StepDetail, layout: StepLayout): string[] => {
  const { style, now } = layout;
  const head = [
    style.bold(step.id),
    formatState(step.state, style),
    step.capability,
    formatSpan(step.started_at, step.finished_at, now),
    formatUsd(step.cost_usd),
  ].filter((part) => part !== '');
  const details = step.error?.details;
  return [
    head.join('  '),
    ...(step.depends_on.length === 0 ? [] : [`after ${step.depends_on.join(', ')}`]),
    ...(step.error === undefined ? [] : [`${style.red(step.error.code)}: ${step.error.message}`]),
    ...(details === undefined || details === null ? [] : indentJson(details)),
    ...(step.input === undefined ? [] : [style.bold('input'), ...indentJson(step.input)]),
    ...(step.output === undefined ? [] : [style.bold('output'), ...indentJson(step.output)]),
    ...step.attempt_list.flatMap((attempt, index) => renderAttempt(attempt, index + 1, layout)),
  ];
};
