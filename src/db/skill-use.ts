/** Uses of skills, from which their counts are made. */
import type { SkillOutcome } from '@capstan/core/contracts/skill';
import type { Db } from './connect.ts';
import type { SkillRow } from './skill.ts';
import { query } from './statements.ts';

export interface NewSkillUse {
  readonly skill_id: string;
  /** The version that was used. */
  readonly version: number;
  readonly level: number;
  readonly outcome: SkillOutcome;
}

/** The transition in which skills were used; null: a call of `/execute`, which always counts. */
export interface SkillOccasion {
  readonly escalation_id: string;
  readonly transition: number;
}

export type CountedSkillRow = Pick<
  SkillRow,
  'skill_id' | 'source' | 'success_count' | 'failure_count' | 'uses' | 'uses_since_keep' | 'flagged_at'
>;

export interface SkillUses {
  readonly project_id: string;
  /** Null: a call of `/execute`, whose uses count every time they are written. */
  readonly occasion: SkillOccasion | null;
  readonly uses: readonly NewSkillUse[];
}

/** Locks skills by id, so that two statements cannot deadlock. */
const insertAndCount = `with told as (
    select * from unnest(cast(:ids as text[]), cast(:versions as int[]), cast(:levels as int[]),
      cast(:outcomes as text[])) t (skill_id, version, level, outcome)
  ), locked as materialized (
    select skill_id from skill where project_id = :project_id and skill_id in (select skill_id from told)
    order by skill_id for no key update
  ), used as (
    insert into skill_use (skill_id, version, escalation_id, transition, level, outcome)
    select t.skill_id, t.version, :escalation_id, :transition, t.level, t.outcome
    from told t join locked using (skill_id)
    on conflict (skill_id, escalation_id, transition) do nothing
    returning skill_id, outcome
  ), counted as (
    select skill_id, (count(*) filter (where outcome = 'success'))::int as successes,
      (count(*) filter (where outcome = 'failure'))::int as failures
    from used group by skill_id
  )
  update skill s set success_count = s.success_count + c.successes,
    failure_count = s.failure_count + c.failures, last_used_at = clock_timestamp()
  from counted c where s.skill_id = c.skill_id
  returning s.skill_id, s.source, s.success_count, s.failure_count, s.flagged_at,
    s.success_count - s.base_success + s.failure_count - s.base_failure as uses,
    s.success_count - s.base_success + s.failure_count - s.base_failure - s.uses_at_keep as uses_since_keep`;

/**
 * Writes and counts uses of a project's skills in one statement. A use that its occasion has already written does not
 * count again.
 * @returns the used skills, with their new counts
 */
export async function addSkillUses(
  db: Db,
  { project_id, occasion, uses }: SkillUses,
): Promise<readonly CountedSkillRow[]> {
  if (uses.length === 0) return [];
  return query<CountedSkillRow>(db).all(insertAndCount, {
    project_id,
    ids: uses.map(({ skill_id }) => skill_id),
    versions: uses.map(({ version }) => version),
    levels: uses.map(({ level }) => level),
    outcomes: uses.map(({ outcome }) => outcome),
    escalation_id: occasion?.escalation_id ?? null,
    transition: occasion?.transition ?? null,
  });
}

export interface SkillUseRow extends NewSkillUse {
  /** bigint as text */
  readonly use_id: string;
  readonly escalation_id: string | null;
  readonly at: Date;
}

/** Newest first. @param after the last use of the page before */
export async function listSkillUses(
  db: Db,
  { project_id, skill_id }: { readonly project_id: string; readonly skill_id: string },
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
): Promise<readonly SkillUseRow[]> {
  const query = db('skill_use as u')
    .join('skill as s', 's.skill_id', 'u.skill_id')
    .where({ 's.project_id': project_id, 'u.skill_id': skill_id })
    .orderBy('u.use_id', 'desc')
    .limit(limit);
  if (after !== undefined) query.where('u.use_id', '<', after);
  return query.select(
    'u.use_id',
    'u.skill_id',
    'u.version',
    'u.escalation_id',
    'u.level',
    'u.outcome',
    'u.at',
  );
}
