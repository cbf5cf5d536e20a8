import type { OnBudget } from '@capstan/core/contracts/decision';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface ProjectRow {
  readonly project_id: string;
  readonly name: string;
  readonly timezone: string;
  /** bigint as text */
  readonly daily_limit_nano: string;
  /** Refuses requests of which a model would not get every field. */
  readonly is_strict: boolean;
  /** For how long contents of calls are kept; null: they are not. */
  readonly content_days: number | null;
  /** The end of calls whose budgets have no more room; null: the defaults. */
  readonly on_budget: OnBudget | null;
  readonly created_at: Date;
}

/** The public columns of a project. */
const columns =
  'project_id, name, timezone, daily_limit_nano, is_strict, content_days, on_budget, created_at';

export function insertProject(
  db: Db,
  project: { project_id: string; name: string; timezone: string; daily_limit_nano: bigint },
): Promise<ProjectRow> {
  return query<ProjectRow>(db).one(
    `insert into project (project_id, name, timezone, daily_limit_nano) values (?, ?, ?, ?) returning ${columns}`,
    [project.project_id, project.name, project.timezone, project.daily_limit_nano.toString()],
  );
}

type ProjectChange = Pick<ProjectRow, 'project_id'> & {
  /** Undefined, as the next: it stays. */
  readonly is_strict?: boolean | undefined;
  readonly content_days?: number | null | undefined;
  readonly on_budget?: OnBudget | null | undefined;
  readonly timezone?: string | undefined;
};

/** @returns undefined when there is no such project */
export function changeProjectRow(
  trx: Db,
  { project_id, is_strict, content_days, on_budget, timezone }: ProjectChange,
): Promise<ProjectRow | undefined> {
  return query<ProjectRow>(trx).first(
    `update project set is_strict = coalesce(:is_strict, is_strict), timezone = coalesce(:timezone, timezone),
       content_days = case when :keeps then content_days else cast(:content_days as int) end,
       on_budget = case when :keeps_end then on_budget else :on_budget end,
       content_since = case when content_days is null then clock_timestamp() else content_since end
     where project_id = :project_id returning ${columns}`,
    {
      project_id,
      is_strict: is_strict ?? null,
      timezone: timezone ?? null,
      keeps: content_days === undefined,
      content_days: content_days ?? null,
      keeps_end: on_budget === undefined,
      on_budget: on_budget ?? null,
    },
  );
}

/** Whether contents of the project's calls are kept. */
export function keepsContents(db: Db, projectId: string): Promise<boolean> {
  return query(db, 'keeps_contents').some(
    'select 1 from project where project_id = ? and content_days is not null',
    [projectId],
  );
}

/** Oldest first (ids increase with time), after the id `after`. */
export function listProjects(
  db: Db,
  { ids, after, limit }: { ids: readonly string[]; after: string | null; limit: number },
): Promise<ProjectRow[]> {
  return query<ProjectRow>(db).all(
    `select ${columns} from project where project_id = any(?) and project_id > coalesce(?, '')
     order by project_id limit ?`,
    [[...ids], after, limit],
  );
}

/** Ids of all projects, oldest first. */
export async function listProjectIds(db: Db): Promise<string[]> {
  const rows = await query<{ project_id: string }>(db).all(
    'select project_id from project where erasing_since is null order by project_id',
  );
  return rows.map((row) => row.project_id);
}

export async function projectExists(db: Db, projectId: string): Promise<boolean> {
  return (await db('project').where({ project_id: projectId }).first('project_id')) !== undefined;
}

export async function findOldestProject(db: Db, name: string): Promise<ProjectRow | null> {
  const row = await query<ProjectRow>(db).first(
    `select ${columns} from project where name = ? and erasing_since is null order by project_id limit 1`,
    [name],
  );
  return row ?? null;
}

/** Whether the database can count days in this zone. It reads every zone for that: 20 ms, which the usual one is spared. */
export async function isKnownTimezone(db: Db, name: string): Promise<boolean> {
  if (name === 'UTC') return true;
  return query(db).some('select 1 from pg_timezone_names where name = ?', [name]);
}
