/**
 * Carries out a person's decision about an exhausted budget or a skill, in the transaction that stores the decision.
 *
 * The decision raises the budget, skips the waiting steps that may be skipped, or cancels the waiting runs. For a
 * ladder's review about money only the raise happens here; the ladder does the rest.
 */

import type { BudgetRefusal } from '@capstan/core/contracts/money';
import type { SkillPatch } from '@capstan/core/contracts/skill';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { limitFor } from '@capstan/core/money/reservation';
import type { Db } from '../../db/connect.ts';
import { listBudgets } from '../../db/money/budget.ts';
import { listScopedBudgets, readScopedRow, type ScopedRow } from '../../db/money/scoped-budget.ts';
import { readDefinition } from '../../db/pipeline.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import type { SkillRow } from '../../db/skill.ts';
import { listWaitingForBudget, skipUnits, type WaitingRow, wakeUnits } from '../../db/step/step-wait.ts';
import { type Caller, requireScope } from '../access/caller.ts';
import { raiseRun, setDayLimit } from '../money/budgets.ts';
import { removeScopedLimit, setScopedLimit } from '../money/scoped-budgets.ts';
import {
  checkSkill,
  keepSkillAsItIs,
  requireSkill,
  retireSkillForGood,
  reviseSkillText,
  type SkillChange,
  trustOfPatch,
} from '../skills/stored-skill.ts';

/**
 * @param trx in which the decision is stored: a refusal here undoes the decision
 * @throws AppError `request_invalid` when the decision does not fit, `state_conflict`, `forbidden`
 */
export async function applyBudgetDecision(trx: Db, row: ReviewRow, caller: Caller): Promise<void> {
  const { subject, decision } = row;
  if (subject === null || decision === null) throw new AppError('internal', 'no budget was decided about');
  if (row.escalation_id !== null && decision.action !== 'raise') return;
  switch (decision.action) {
    case 'raise':
      return raise(trx, { row, subject, limitUsd: decision.budget_ceiling_usd ?? 0 }, caller);
    case 'skip':
      return skip(trx, row, subject);
    case 'cancel':
      return cancel(trx, row, { subject, note: decision.note, by: caller.key_id });
    default:
      throw refuseDecision('/action', `${decision.action} is no decision about a budget`);
  }
}

/** `request_invalid`: the review does not accept that. */
export function refuseDecision(pointer: string, message: string): AppError {
  return refuseField(pointer, message, 'not_possible');
}

/** The limit that the review showed; for the day of all projects, which no review shows, the current one. */
async function limitBefore(
  trx: Db,
  { payload, subject, project_id }: ReviewRow,
): Promise<number | undefined> {
  const limit = payload.details?.limit_usd;
  if (subject !== 'global') return typeof limit === 'number' ? limit : undefined;
  const day = (await listBudgets(trx, project_id)).find(({ scope }) => scope === 'global');
  return fromNanoUsd(BigInt(day?.limit_nano ?? 0));
}

function describeNeed(details: ReviewRow['payload']['details']): string {
  if (typeof details?.minimum_usd !== 'number') return '';
  const least = limitFor(details as unknown as BudgetRefusal, 1);
  return least === null ? '' : `; the call that waits needs ${least} USD at least`;
}

async function raise(
  trx: Db,
  {
    row,
    subject,
    limitUsd,
  }: { readonly row: ReviewRow; readonly subject: string; readonly limitUsd: number },
  caller: Caller,
): Promise<void> {
  const [scope = '', id = ''] = subject.split(':');
  if (scope === 'global') requireScope(caller, 'operator');
  const scoped = readScopedRow(subject);
  const before = await limitBefore(trx, row);
  const isNone = scope !== 'run' && limitUsd === 0;
  if (before !== undefined && limitUsd <= before && !isNone) {
    throw refuseDecision(
      '/budget_ceiling_usd',
      `${limitUsd} USD does not raise the limit of ${before} USD${describeNeed(row.payload.details)}`,
    );
  }
  if (scope === 'run') {
    const limit = { ceilingUsd: limitUsd, by: caller.key_id, isRaise: true };
    return raiseRun(trx, { project_id: row.project_id, run_id: id }, limit);
  }
  if (scope !== 'global') requireScope(caller, 'budget:write');
  if (scoped !== null) return raiseScoped(trx, scoped, { limitUsd, by: caller.key_id });
  const day = scope === 'global' ? ({ scope } as const) : ({ scope: 'project', project_id: id } as const);
  // This decision answers the review; the raised budget answers the others about it.
  await setDayLimit(trx, day, { limitUsd, by: caller.key_id, isRaise: true });
}

/** 0 removes the budget. */
async function raiseScoped(
  trx: Db,
  { projectId: project_id, scope, period }: ScopedRow,
  { limitUsd: limit_usd, by }: { readonly limitUsd: number; readonly by: string },
): Promise<void> {
  const order = { project_id, scope, by };
  const rows = await listScopedBudgets(trx, project_id, scope);
  const soft = rows.find((row) => row.period === period)?.soft;
  if (soft === undefined) throw new AppError('state_conflict', `the budget of ${scope} was removed`);
  if (limit_usd === 0) await removeScopedLimit(trx, order, period);
  else await setScopedLimit(trx, order, { period, limit_usd, soft });
}

/** Steps of the definition that a person may skip. */
async function readOptional(trx: Db, digest: string): Promise<ReadonlySet<string>> {
  const definition = await readDefinition(trx, digest);
  const optional = definition?.steps.filter((step) => step.optional === true) ?? [];
  return new Set(optional.map(({ id }) => id));
}

async function listOptional(trx: Db, waiting: readonly WaitingRow[]): Promise<readonly WaitingRow[]> {
  const optional = new Map<string, ReadonlySet<string>>();
  for (const digest of new Set(waiting.map((row) => row.digest))) {
    optional.set(digest, await readOptional(trx, digest));
  }
  return waiting.filter(({ digest, step_id }) => optional.get(digest)?.has(step_id) === true);
}

function listOwn(trx: Db, { project_id }: ReviewRow, scope: string): Promise<readonly WaitingRow[]> {
  return listWaitingForBudget(trx, { project_id, scope });
}

/** Steps that may not be skipped are retried, so that their need opens a new review. */
async function skip(trx: Db, row: ReviewRow, subject: string): Promise<void> {
  const waiting = await listOwn(trx, row, subject);
  const optional = await listOptional(trx, waiting);
  const data = { review_id: row.review_id, by: row.decided_by ?? '' };
  await wakeUnits(trx, waiting);
  if ((await skipUnits(trx, optional, data)) > 0) return;
  const names = [...new Set(waiting.map(({ step_id }) => step_id))].slice(0, 5).join(', ');
  throw refuseDecision(
    '/action',
    `no step that waits for it is optional; those that wait: ${names || 'none'}`,
  );
}

async function cancel(
  trx: Db,
  row: ReviewRow,
  order: { readonly subject: string; readonly note: string | undefined; readonly by: string },
): Promise<void> {
  const { subject, note, by } = order;
  const waiting = await listOwn(trx, row, subject);
  const reason = note ?? `decided in ${row.review_id}: there is no money for it`;
  const [scope, id = ''] = subject.split(':');
  // A run's own budget: the run ends with its child runs that wait for it.
  const runIds = scope === 'run' ? [id] : new Set(waiting.map((unit) => unit.run_id));
  for (const run_id of runIds) {
    await requestCancel(trx, { project_id: row.project_id, run_id }, { reason, mode: 'graceful', by });
  }
}

/**
 * @param trx in which the decision is stored: a refusal here undoes the decision
 * @throws AppError `request_invalid` when the decision does not fit, `not_found`, `state_conflict`, `forbidden`
 */
export async function applySkillDecision(
  trx: Db,
  { skill_id, project_id, decision }: Pick<ReviewRow, 'skill_id' | 'project_id' | 'decision'>,
  caller: Caller,
): Promise<void> {
  if (skill_id === null || decision === null) throw new AppError('internal', 'no skill was decided about');
  const change: SkillChange = { project_id, skill_id, actor: caller.key_id };
  switch (decision.action) {
    case 'keep':
      return keepSkillAsItIs(trx, change);
    case 'edit':
      return revise(trx, change, { patch: decision.skill, caller });
    case 'narrow':
      requireNarrower(await requireSkill(trx, project_id, skill_id), decision.skill);
      return revise(trx, change, { patch: decision.skill, caller });
    case 'merge':
      return merge(trx, change, decision.into);
    case 'retire':
      return retireSkillForGood(trx, change);
    default:
      throw refuseField('/action', `${decision.action} is not a decision about a skill`);
  }
}

async function revise(
  trx: Db,
  change: SkillChange,
  { patch, caller }: { readonly patch: SkillPatch | undefined; readonly caller: Caller },
): Promise<void> {
  if (patch === undefined)
    throw refuseField('/skill', 'the decision has no change; give the fields of the skill to change');
  checkSkill(patch, '/skill');
  const trust = trustOfPatch(caller, patch, { isDecision: true });
  await reviseSkillText(trx, change, { patch, trust });
}

/** The skill must become more specific: another signal, or patterns where any error matched. */
function requireNarrower(skill: SkillRow, patch: SkillPatch | undefined): void {
  const { repo_signals = skill.repo_signals, error_patterns = skill.error_patterns } = patch?.pattern ?? {};
  if (!skill.repo_signals.every((signal) => repo_signals.includes(signal))) {
    throw refuseField('/skill/pattern/repo_signals', 'a narrower skill must keep all its signals');
  }
  if (error_patterns.length === 0 && skill.error_patterns.length > 0) {
    throw refuseField(
      '/skill/pattern/error_patterns',
      'a skill without error patterns would match any error; give at least one',
    );
  }
  const hasMoreSignals = repo_signals.length > skill.repo_signals.length;
  if (hasMoreSignals || String(error_patterns) !== String(skill.error_patterns)) return;
  throw refuseField('/skill/pattern', 'a narrower skill needs one more signal, or other error patterns');
}

async function merge(trx: Db, change: SkillChange, into: string | undefined): Promise<void> {
  const skill = await requireSkill(trx, change.project_id, change.skill_id);
  const other = into === undefined || into === change.skill_id ? undefined : into;
  if (other === undefined) throw refuseField('/into', 'name the other skill, which is kept');
  const { state, job_type } = await requireSkill(trx, change.project_id, other);
  if (state === 'retired' || job_type !== skill.job_type) {
    throw refuseField('/into', `${other} is not an active skill for ${skill.job_type}`);
  }
  await retireSkillForGood(trx, change, other);
}
