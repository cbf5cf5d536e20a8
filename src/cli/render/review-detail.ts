/** Everything for a decision: the failure and its cause, the proposals, the earlier attempts. */

import type { Json } from '@capstan/core/contracts/primitives';
import type { Review, ReviewProposal } from '@capstan/core/contracts/review';
import { applyPatch, findPointerFault, type PatchOperation, valueAt } from '@capstan/core/json/patch';
import { writeJson } from '@capstan/core/json/text';
import { listFindings, shortenLines } from '@capstan/core/json/values';
import { UsageError } from '../errors.ts';
import { formatDuration, formatState } from './formats.ts';
import type { Style } from './print.ts';
import { indentJson, type StepLayout } from './run.ts';

/** `due in 23h00m`, `overdue by 5m00s`; empty for a closed review. */
export function formatDue({ state, due_at }: Pick<Review, 'state' | 'due_at'>, now: number): string {
  if (state !== 'open' && state !== 'claimed') return '';
  const left = Date.parse(due_at) - now;
  return left >= 0 ? `due in ${formatDuration(left)}` : `overdue by ${formatDuration(-left)}`;
}

export function formatSubject(review: Review): string {
  if (review.run_id !== undefined) return `${review.run_id} ${review.step_id ?? ''}`.trimEnd();
  return review.skill_id ?? review.escalation_id ?? review.payload.job_type ?? '';
}

// Values inside the input, each addressed by a JSON Pointer.

function noPlace(pointer: string): UsageError {
  return new UsageError(`"${pointer}" is no place in the input; write /key or /list/0, with ~1 for /`);
}

/** Undefined when there is no value. @throws UsageError */
function readPlace(document: Json | undefined, pointer: string): Json | undefined {
  if (findPointerFault(pointer) !== null) throw noPlace(pointer);
  return document === undefined ? undefined : valueAt(document, pointer);
}

type Edit = { readonly set: Json } | 'remove';

function toOperation(document: Json, path: string, edit: Edit): PatchOperation {
  if (edit === 'remove') return { op: 'remove', path };
  const op = valueAt(document, path) === undefined ? 'add' : 'replace';
  return { op, path, value: edit.set };
}

/** @throws UsageError when the document has no such place */
export function editPlace(document: Json, pointer: string, edit: Edit): Json {
  if (pointer === '' || findPointerFault(pointer) !== null) throw noPlace(pointer);
  const edited = applyPatch(document, [toOperation(document, pointer, edit)]);
  if (!edited.ok) throw new UsageError(`the input has no place ${pointer}`);
  return edited.value;
}

function show(value: Json | undefined): string {
  return value === undefined ? '' : writeJson(value);
}

/** One or two lines for each operation of a JSON Patch, with the previous value. */
function renderOperation(operation: ReviewProposal['patch'][number], input: Json | undefined, style: Style) {
  const { op, path, from, value } = operation;
  const place = String(path);
  const removed = (at: string) => style.red(`- ${at || '/'} ${show(readPlace(input, at))}`);
  const added = (was: Json | undefined) => style.green(`+ ${place || '/'} ${show(was)}`);
  switch (op) {
    case 'test':
      return [];
    case 'remove':
      return [removed(place)];
    case 'move':
    case 'copy': {
      const old = readPlace(input, String(from));
      return op === 'move' ? [removed(String(from)), added(old)] : [added(old)];
    }
    default:
      return readPlace(input, place) === undefined || op === 'add'
        ? [added(value)]
        : [removed(place), added(value)];
  }
}

function renderProposal(
  { index, source, note, patch }: ReviewProposal & { readonly index: number },
  input: Json | undefined,
  style: Style,
): string[] {
  return [
    `  ${index}  ${source}${note === undefined ? '' : `: ${note}`}`,
    ...patch.flatMap((operation) => renderOperation(operation, input, style)).map((line) => `     ${line}`),
  ];
}

function section(style: Style, title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [style.bold(title), ...lines];
}

function renderPayload({ kind, payload }: Pick<Review, 'kind' | 'payload'>, style: Style): string[] {
  const { input, error, validation_errors = [], proposals = [], history = [], advice = [], schema } = payload;
  return [
    ...section(style, 'error', error === undefined ? [] : error.split('\n').map((line) => `  ${line}`)),
    ...section(style, 'input', input === undefined ? [] : indentJson(input)),
    ...section(
      style,
      'findings',
      shortenLines(listFindings(validation_errors)).map((line) => `  ${line}`),
    ),
    ...section(
      style,
      'proposals',
      proposals.flatMap((proposal, index) => renderProposal({ ...proposal, index }, input, style)),
    ),
    ...section(
      style,
      'history',
      history.map(({ level, label, attempted_at, error: text }) => {
        const at = new Date(attempted_at * 1_000).toISOString();
        return `  ${at}  level ${level} ${label}: ${text.split('\n')[0]}`;
      }),
    ),
    ...section(
      style,
      'advice',
      advice.map(({ from_level, label, instructions, suggested_executor_level: next }) => {
        const suggests = next === undefined ? '' : ` (suggests level ${next})`;
        return `  level ${from_level} ${label}: ${instructions}${suggests}`;
      }),
    ),
    ...section(style, 'details', payload.details === undefined ? [] : indentJson(payload.details)),
    ...section(
      style,
      kind === 'step' ? 'schema of the answer' : 'schema of the input',
      schema === undefined ? [] : indentJson(schema),
    ),
  ];
}

/** Usage lines for actions without a command of their own. */
function renderUsage({ review_id, actions }: Review): string[] {
  return (
    [
      ['output', '"output": …'],
      ['raise', '"budget_ceiling_usd": …'],
    ] as const
  ).flatMap(([action, field]) =>
    actions.includes(action)
      ? [`capstan review decide ${review_id} -d '{"action": "${action}", ${field}}'`]
      : [],
  );
}

function renderDecision({ decision, decided_by, decided_at, delivered_at }: Review): string[] {
  if (decision === undefined) return [];
  const note = decision.note === undefined ? '' : `: ${decision.note}`;
  const waiting = delivered_at === undefined ? ', not delivered yet' : '';
  return [`  ${decision.action} by ${decided_by} at ${decided_at}${waiting}${note}`];
}

export function renderReview(review: Review, { style, now }: StepLayout): string[] {
  const { review_id, state, kind, version, round, run_id, step_id, assignee } = review;
  const head = [
    style.bold(review_id),
    formatState(state, style),
    kind,
    formatDue(review, now),
    `version ${version}`,
    round === 1 ? '' : `round ${round}`,
    assignee === undefined ? '' : `claimed by ${assignee} until ${review.claim_expires_at}`,
  ].filter((part) => part !== '');
  const subject = formatSubject(review);
  const look =
    run_id === undefined || step_id === undefined ? '' : `capstan show ${run_id} --step ${step_id}`;
  const isWaiting = state === 'open' || state === 'claimed';
  return [
    head.join('  '),
    review.reason,
    ...(subject === '' ? [] : [`about ${subject}`]),
    ...(look === '' ? [] : [style.dim(look)]),
    ...renderPayload(review, style),
    ...section(style, 'decision', renderDecision(review)),
    ...(isWaiting ? [`takes ${review.actions.join(', ')}`, ...renderUsage(review).map(style.dim)] : []),
  ];
}
