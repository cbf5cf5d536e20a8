/**
 * The registry of skills, by project. Counts, times and trust are accepted from admin keys only; any other skill starts
 * as a candidate with one success, and a repeated submission adds nothing. `source` is stored as it was sent: it names
 * the origin of a skill, not its trust.
 */

import type {
  Skill,
  SkillPatch,
  SkillRequest,
  SkillState,
  SkillUse,
  SkillWorth,
} from '@capstan/core/contracts/skill';
import { AppError } from '@capstan/core/errors/app-error';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { listSkills as orderSkills } from '@capstan/core/skills/confidence';
import type { Ctx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { cancelSkillReviews } from '../../db/review/review-delivery.ts';
import {
  countSkillAgain,
  listSkills,
  readSkillWorth as readWorthRow,
  type SkillWorthRow,
  storeSkill,
} from '../../db/skill.ts';
import { listSkillUses, type SkillUseRow } from '../../db/skill-use.ts';
import { newId } from '../../parts/ids.ts';
import { toSkill } from '../../parts/skill-matcher.ts';
import type { Caller } from '../access/caller.ts';
import { decodeNumberCursor, type PageRequest, toPage } from '../cursor.ts';
import {
  checkQueryText,
  checkSkill,
  isAdmin,
  requireSkill,
  retireSkillForGood,
  reviseSkillText,
  type SkillChange,
  trustOf,
  trustOfPatch,
  writeSkillText,
} from './stored-skill.ts';

function learntOf({
  escalation_id,
  run_id,
  step_id,
  cost_nano,
  ...row
}: SkillWorthRow): SkillWorth['learnt'] {
  if (escalation_id === null) return null;
  return {
    escalation_id,
    ...(run_id === null ? {} : { run_id }),
    ...(step_id === null ? {} : { step_id }),
    error: row.error ?? '',
    input: row.input,
    corrected: row.corrected,
    cost_usd: fromNanoUsd(BigInt(cost_nano)),
    duration_ms: Math.round(row.duration_ms ?? 0),
  };
}

type SkillCtx = Pick<Ctx, 'db'>;

/** @throws AppError `not_found` */
export async function readSkillWorth(
  { db }: SkillCtx,
  { project_id }: Caller,
  skillId: string,
): Promise<SkillWorth> {
  const row = await readWorthRow(db, project_id, skillId);
  if (row === undefined) throw new AppError('not_found', `there is no skill ${skillId}`);
  const learnt = learntOf(row);
  const { uses } = row;
  return {
    uses,
    saved_usd: fromNanoUsd(BigInt(uses) * BigInt(row.cost_nano)),
    saved_ms: uses * (learnt?.duration_ms ?? 0),
    reviews_avoided: row.was_reviewed ? uses : 0,
    learnt,
  };
}

export interface SkillListQuery {
  readonly job_type?: string | undefined;
  /** Separated by commas. */
  readonly signals?: string | undefined;
  readonly state: SkillState;
}

function toDate(unixSeconds: number | undefined): Date | null {
  return unixSeconds === undefined ? null : new Date(unixSeconds * 1_000);
}

function toUse(row: SkillUseRow): SkillUse {
  return { ...row, at: row.at.toISOString() };
}

/** The record of a skill: sent by an admin key, or the initial one of every other skill. */
function recordOf(caller: Caller, request: SkillRequest) {
  return isAdmin(caller)
    ? {
        success_count: request.success_count ?? 1,
        failure_count: request.failure_count ?? 0,
        last_used_at: toDate(request.last_used),
        created_at: toDate(request.created_at),
      }
    : { success_count: 1, failure_count: 0, last_used_at: null, created_at: null };
}

async function storeRequest(trx: Db, caller: Caller, request: SkillRequest) {
  const { pattern, instructions, template = null, source } = request;
  const { job_type, repo_signals, error_patterns = [] } = pattern;
  const { project_id, key_id } = caller;
  const [record, trust] = [recordOf(caller, request), trustOf(caller)];
  const stored = await storeSkill(trx, {
    ...writeSkillText({ repo_signals, error_patterns, instructions, template }, key_id),
    skill_id: newId('skill'),
    project_id,
    job_type,
    trust,
    source,
    escalation_id: null,
    ...record,
    added_success: 0,
    added_failure: 0,
  });
  const entry = { project_id, actor: key_id, subject: stored.skill_id };
  if (stored.is_new) {
    await insertAudit(trx, { ...entry, action: 'skill.created', data: { source, trust } });
  } else if (isAdmin(caller)) {
    const counted = await countSkillAgain(trx, stored.skill_id, record);
    await insertAudit(trx, { ...entry, action: 'skill.sent_again', data: { source, trust, counted } });
  }
  return { id: stored.skill_id, is_new: stored.is_new };
}

/** Changes a skill and closes its open review: a changed skill needs no decision any more. */
async function changeSkill(
  { db }: SkillCtx,
  { caller: { project_id, key_id }, skill_id }: { readonly caller: Caller; readonly skill_id: string },
  work: (trx: Db, at: SkillChange) => Promise<void>,
): Promise<Skill> {
  await db.transaction(async (trx) => {
    await work(trx, { project_id, skill_id, actor: key_id });
    await cancelSkillReviews(trx, skill_id);
  });
  return toSkill(await requireSkill(db, project_id, skill_id));
}

/** `is_new`: no equal skill of the job type existed. @throws AppError `request_invalid` */
export async function createSkill(
  { db }: SkillCtx,
  caller: Caller,
  request: SkillRequest,
): Promise<{ id: string; is_new: boolean }> {
  checkSkill(request);
  return db.transaction((trx) => storeRequest(trx, caller, request));
}

/** By confidence, then recency. With signals: the skills that need no others. */
export async function findSkills(
  { db }: SkillCtx,
  { project_id }: Caller,
  query: SkillListQuery,
): Promise<Skill[]> {
  const { job_type, state } = query;
  for (const name of ['job_type', 'signals'] as const) checkQueryText(name, query[name] ?? '');
  const signals = query.signals?.split(',').map((signal) => signal.trim());
  const rows = await listSkills(db, { project_id, job_type, state, signals });
  return orderSkills(rows.map(toSkill));
}

/** @throws AppError `not_found` */
export async function readSkill({ db }: SkillCtx, { project_id }: Caller, id: string): Promise<Skill> {
  return toSkill(await requireSkill(db, project_id, id));
}

/** A new version. @throws AppError `request_invalid`, `forbidden`, `not_found`, `state_conflict` */
export async function patchSkill(
  ctx: SkillCtx,
  { caller, skill_id }: { readonly caller: Caller; readonly skill_id: string },
  patch: SkillPatch,
): Promise<Skill> {
  checkSkill(patch);
  const trust = trustOfPatch(caller, patch, { isDecision: false });
  return changeSkill(ctx, { caller, skill_id }, (trx, at) => reviseSkillText(trx, at, { patch, trust }));
}

/** Retires the skill: it keeps its id and is no longer applied. @throws AppError `not_found` */
export function retireSkill(ctx: SkillCtx, caller: Caller, skill_id: string): Promise<Skill> {
  return changeSkill(ctx, { caller, skill_id }, (trx, at) => retireSkillForGood(trx, at));
}

/** Newest first. @throws AppError `not_found`, `request_invalid` for an invalid cursor */
export async function readSkillUses(
  { db }: SkillCtx,
  { project_id, skill_id }: { readonly project_id: string; readonly skill_id: string },
  { limit, cursor }: PageRequest,
) {
  await requireSkill(db, project_id, skill_id);
  const after = cursor === undefined ? undefined : decodeNumberCursor(cursor);
  const rows = await listSkillUses(db, { project_id, skill_id }, { after, limit: limit + 1 });
  return toPage(rows, limit, { key: (row) => row.use_id, item: toUse });
}
