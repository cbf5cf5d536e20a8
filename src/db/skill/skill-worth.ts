/** What a skill came from, and how often it has helped since. */
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';

export interface SkillWorthRow {
  /** Uses that worked. */
  readonly uses: number;
  /** Null, with all below: there is no ladder that it came from. */
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

/** Undefined: the project has no such skill. */
export async function readSkillWorth(
  db: Db,
  projectId: string,
  skillId: string,
): Promise<SkillWorthRow | undefined> {
  const { rows } = await db.raw<{ rows: SkillWorthRow[] }>(
    `select (select count(*)::int from skill_use u where u.skill_id = s.skill_id and u.outcome = 'success') as uses,
       e.escalation_id, e.run_id, e.step_id, e.escalation_history -> 0 ->> 'error' as error, e.context as input,
       case when e.run_id is null then e.result else (
         select r.input from step_revision r where r.escalation_id = e.escalation_id
         order by r.transition desc, r.choice desc limit 1) end as corrected,
       coalesce((select sum(a.settled_nano) from attempt a where a.key like 'esc\\_%'
         and a.key ~>=~ (e.escalation_id || '.') and a.key ~<~ (e.escalation_id || '/')
         and a.project_id = e.project_id), 0)::text as cost_nano,
       extract(epoch from e.finished_at - e.created_at)::float8 * 1000 as duration_ms,
       coalesce(e.review_id is not null, false) as was_reviewed
     from skill s left join escalation e on e.escalation_id = s.escalation_id and e.project_id = s.project_id
     where s.skill_id = ? and s.project_id = ?`,
    [skillId, projectId],
  );
  return rows[0];
}
