/**
 * Queries on skills. A row is a skill with its current version and its counts; all belong to one project.
 *
 * Lock order: a skill comes before its reviews. A change of a skill, or a count of its uses, precedes the change of its
 * reviews. A decision in a review must lock the skill first, or the two would deadlock.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import {
  type AsDecided,
  decidedSource,
  type SkillState,
  type SkillTrust,
} from '@capstan/core/contracts/skill';
import type { Db } from './connect.ts';
import { asDecidedBy } from './review/repair-decision.ts';
import { query } from './statements.ts';

/** The content of a version. */
export interface SkillText {
  readonly repo_signals: readonly string[];
  /** Empty: any error. */
  readonly error_patterns: readonly string[];
  readonly instructions: string;
  readonly template: string | null;
  /** Digest of the whole content; equal skills of a job type have equal digests. */
  readonly content_sha256: Buffer;
  /** A key, or the part of Capstan that made it. */
  readonly author: string;
}

export interface NewSkill extends SkillText {
  readonly skill_id: string;
  readonly project_id: string;
  readonly job_type: string;
  readonly trust: SkillTrust;
  readonly source: string;
  /** Counts of a new skill. */
  readonly success_count: number;
  readonly failure_count: number;
  /** Counts added to an equal skill that exists. */
  readonly added_success: number;
  readonly added_failure: number;
  /** The escalation that made it. */
  readonly escalation_id: string | null;
  /** Null = now. */
  readonly last_used_at: Date | null;
  readonly created_at: Date | null;
}

export interface SkillRow
  extends Pick<SkillText, 'repo_signals' | 'error_patterns' | 'instructions' | 'template'> {
  readonly skill_id: string;
  readonly project_id: string;
  readonly job_type: string;
  readonly state: SkillState;
  readonly trust: SkillTrust;
  readonly source: string;
  readonly version: number;
  readonly success_count: number;
  readonly failure_count: number;
  /** Counted uses in this installation, without imported counts. */
  readonly uses: number;
  /** Uses since a person last reviewed it. */
  readonly uses_since_keep: number;
  readonly flagged_at: Date | null;
  readonly escalation_id: string | null;
  readonly last_used_at: Date;
  readonly created_at: Date;
  readonly as_decided: AsDecided | null;
}

function usesOf(skill: string): string {
  return `(${skill}.success_count - ${skill}.base_success + ${skill}.failure_count - ${skill}.base_failure)`;
}

const select = `select s.skill_id, s.project_id, s.job_type, s.state, s.trust, s.source, s.version,
    v.repo_signals, v.error_patterns, v.instructions, v.template, s.success_count, s.failure_count,
    ${usesOf('s')} as uses, ${usesOf('s')} - s.uses_at_keep as uses_since_keep,
    s.flagged_at, s.escalation_id, s.last_used_at, s.created_at,
    case when s.source = '${decidedSource}' then ${asDecidedBy('s.skill_id')} end as as_decided
  from skill s join skill_version v on v.skill_id = s.skill_id and v.version = s.version`;

/**
 * Stores a skill, or adds its counts to an equal one in any state; a trusted duplicate makes a candidate trusted.
 * @throws a database error if the escalation has made another skill
 */
export function storeSkill(
  db: Db,
  skill: NewSkill,
): Promise<{ readonly skill_id: string; readonly is_new: boolean }> {
  return query<{ skill_id: string; is_new: boolean }>(db).one(
    `with stored as (
       insert into skill (skill_id, project_id, job_type, trust, source, content_sha256, base_success,
         base_failure, success_count, failure_count, escalation_id, last_used_at, created_at)
       values (:skill_id, :project_id, :job_type, :trust, :source, :content_sha256, :success_count,
         :failure_count, :success_count, :failure_count, :escalation_id,
         coalesce(cast(:last_used_at as timestamptz), clock_timestamp()),
         coalesce(cast(:created_at as timestamptz), clock_timestamp()))
       on conflict (project_id, job_type, content_sha256) do update set
         base_success = skill.base_success + :added_success, base_failure = skill.base_failure + :added_failure,
         success_count = skill.success_count + :added_success,
         failure_count = skill.failure_count + :added_failure,
         trust = case when excluded.trust = 'trusted' then excluded.trust else skill.trust end
       returning skill_id
     ), written as (
       insert into skill_version (skill_id, version, repo_signals, error_patterns, instructions, template, author)
       select skill_id, 1, :repo_signals, :error_patterns, :instructions, :template, :author
       from stored where skill_id = :skill_id
     )
     select skill_id, skill_id = :skill_id as is_new from stored`,
    { ...skill, repo_signals: [...skill.repo_signals], error_patterns: [...skill.error_patterns] },
  );
}

/** Keeps sums within the range of an int. */
const highestCount = 2_000_000_000;

/**
 * Counts a skill that a key sent and now sends again. Capstan's own skills have been counted already.
 * @returns whether it was counted
 */
export function countSkillAgain(
  db: Db,
  skillId: string,
  { success_count, failure_count }: Pick<NewSkill, 'success_count' | 'failure_count'>,
): Promise<boolean> {
  return query(db).some(
    `update skill s set base_success = least(s.base_success + cast(:success_count as bigint), :highest),
       success_count = least(s.success_count + cast(:success_count as bigint), :highest),
       base_failure = least(s.base_failure + cast(:failure_count as bigint), :highest),
       failure_count = least(s.failure_count + cast(:failure_count as bigint), :highest)
     from skill_version v where s.skill_id = :skill_id and v.skill_id = s.skill_id and v.version = s.version
       and v.author like 'key\\_%' returning 1`,
    { skill_id: skillId, success_count, failure_count, highest: highestCount },
  );
}

/** Finds the skill that an escalation made. */
export async function findSkillOfEscalation(db: Db, escalationId: string): Promise<string | undefined> {
  const row = await db('skill').where({ escalation_id: escalationId }).first('skill_id');
  return row?.skill_id;
}

interface SkillFilter {
  readonly project_id: string;
  readonly job_type?: string | undefined;
  /** Skills whose signals are all among these. */
  readonly signals?: readonly string[] | undefined;
  readonly state?: SkillState | undefined;
  readonly flagged?: boolean | undefined;
}

/** All matches, unordered: the caller ranks them. */
export function listSkills(
  db: Db,
  { project_id, job_type, signals, state, flagged }: SkillFilter,
): Promise<readonly SkillRow[]> {
  const conditions = [
    's.project_id = :project_id',
    job_type !== undefined && 's.job_type = :job_type',
    signals !== undefined && 'v.repo_signals <@ cast(:signals as text[])',
    state !== undefined && 's.state = :state',
    flagged !== undefined && `s.flagged_at is ${flagged ? 'not null' : 'null'}`,
  ].filter((condition) => condition !== false);
  return query<SkillRow>(db).all(`${select} where ${conditions.join(' and ')}`, {
    project_id,
    ...(job_type === undefined ? {} : { job_type }),
    ...(signals === undefined ? {} : { signals: [...signals] }),
    ...(state === undefined ? {} : { state }),
  });
}

export function findSkill(db: Db, projectId: string, skillId: string): Promise<SkillRow | undefined> {
  return query<SkillRow>(db).first(`${select} where s.project_id = ? and s.skill_id = ?`, [
    ...[projectId, skillId],
  ]);
}

interface SkillRevision extends SkillText {
  readonly project_id: string;
  readonly skill_id: string;
  /** The version that was changed; the stored one is one higher. */
  readonly version: number;
  /** Null: unchanged. */
  readonly trust: SkillTrust | null;
}

/**
 * Stores a new version. A person has seen it, so the flag is cleared.
 * @returns false if the skill is not active at that version
 * @throws a database error (23505) if another skill of the job type has the same content
 */
export function reviseSkill(db: Db, revision: SkillRevision): Promise<boolean> {
  return query(db).some(
    `with revised as (
       update skill s set version = s.version + 1, content_sha256 = :content_sha256, flagged_at = null,
         trust = coalesce(:trust, s.trust), uses_at_keep = ${usesOf('s')}
       where s.project_id = :project_id and s.skill_id = :skill_id and s.version = :version and s.state = 'active'
       returning s.skill_id, s.version
     )
     insert into skill_version (skill_id, version, repo_signals, error_patterns, instructions, template, author)
     select skill_id, version, :repo_signals, :error_patterns, :instructions, :template, :author from revised
     returning 1`,
    { ...revision, repo_signals: [...revision.repo_signals], error_patterns: [...revision.error_patterns] },
  );
}

/** @returns false if it was flagged already, or is not active */
export async function flagSkill(db: Db, skillId: string): Promise<boolean> {
  const flagged = await db('skill')
    .where({ skill_id: skillId, state: 'active', flagged_at: null })
    .update({ flagged_at: db.raw('clock_timestamp()') });
  return flagged === 1;
}

/** A person reviewed the skill and kept it: only later uses can flag it again. @returns false if it is not active */
export function keepSkill(db: Db, projectId: string, skillId: string): Promise<boolean> {
  return query(db).some(
    `update skill s set flagged_at = null, uses_at_keep = ${usesOf('s')}
     where s.project_id = ? and s.skill_id = ? and s.state = 'active' returning 1`,
    [projectId, skillId],
  );
}

/** @returns false if it does not exist; a retired skill stays retired */
export async function retireSkill(db: Db, projectId: string, skillId: string): Promise<boolean> {
  const retired = await db('skill')
    .where({ project_id: projectId, skill_id: skillId })
    .update({ state: 'retired', flagged_at: null });
  return retired === 1;
}

// The origin of a skill, and how often it has helped since.

export interface SkillWorthRow {
  /** Successful uses. */
  readonly uses: number;
  /** Null, with all fields below: it does not come from a ladder. */
  readonly escalation_id: string | null;
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly error: string | null;
  readonly input: Json;
  readonly corrected: Json;
  /** bigint as text */
  readonly cost_nano: string;
  readonly duration_ms: number | null;
  readonly was_reviewed: boolean;
}

/** @returns undefined if the project has no such skill */
export function readSkillWorth(
  db: Db,
  projectId: string,
  skillId: string,
): Promise<SkillWorthRow | undefined> {
  return query<SkillWorthRow>(db).first(
    `select (select count(*)::int from skill_use u where u.skill_id = s.skill_id and u.outcome = 'success') as uses,
       e.escalation_id, e.run_id, e.step_id, e.escalation_history -> 0 ->> 'error' as error, e.context as input,
       case when e.run_id is null then e.result else (
         select r.input from step_revision r where r.escalation_id = e.escalation_id
         order by r.transition desc, r.choice desc limit 1) end as corrected,
       coalesce((select sum(a.settled_nano) from attempt a where a.key like 'esc\\_%'
         and a.key ~>=~ (e.escalation_id || '.') and a.key ~<~ (e.escalation_id || '/')
         and a.project_id = e.project_id), 0)::text as cost_nano,
       extract(epoch from e.finished_at - e.created_at)::float8 * 1000 as duration_ms,
       e.review_id is not null or s.source = '${decidedSource}' as was_reviewed
     from skill s left join escalation e on e.escalation_id = s.escalation_id and e.project_id = s.project_id
     where s.skill_id = ? and s.project_id = ?`,
    [skillId, projectId],
  );
}

/** Locks the skill until the transaction ends. */
export async function lockSkill(trx: Db, projectId: string, skillId: string): Promise<void> {
  await trx.raw('select 1 from skill where project_id = ? and skill_id = ? for no key update', [
    projectId,
    skillId,
  ]);
}
