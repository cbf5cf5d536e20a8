import type { Db } from '../connect.ts';

export interface ProjectRow {
  readonly project_id: string;
  readonly name: string;
  readonly timezone: string;
  /** bigint as text */
  readonly daily_limit_nano: string;
  readonly created_at: Date;
}

/** The public columns of a project. */
const columns = 'project_id, name, timezone, daily_limit_nano, created_at';

export async function insertProject(
  db: Db,
  project: { project_id: string; name: string; timezone: string; daily_limit_nano: bigint },
): Promise<ProjectRow> {
  const { rows } = await db.raw<{ rows: [ProjectRow] }>(
    `insert into project (project_id, name, timezone, daily_limit_nano) values (?, ?, ?, ?) returning ${columns}`,
    [project.project_id, project.name, project.timezone, project.daily_limit_nano.toString()],
  );
  return rows[0];
}

/** Oldest first (ids increase with time), after the id `after`. */
export async function listProjects(
  db: Db,
  { ids, after, limit }: { ids: readonly string[]; after: string | null; limit: number },
): Promise<ProjectRow[]> {
  const { rows } = await db.raw<{ rows: ProjectRow[] }>(
    `select ${columns} from project where project_id = any(?) and project_id > coalesce(?, '')
     order by project_id limit ?`,
    [[...ids], after, limit],
  );
  return rows;
}

/** Ids of all projects, oldest first. */
export async function listProjectIds(db: Db): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { project_id: string }[] }>(
    'select project_id from project where erasing_since is null order by project_id',
  );
  return rows.map((row) => row.project_id);
}

export async function projectExists(db: Db, projectId: string): Promise<boolean> {
  return (await db('project').where({ project_id: projectId }).first('project_id')) !== undefined;
}

export async function findOldestProject(db: Db, name: string): Promise<ProjectRow | null> {
  const { rows } = await db.raw<{ rows: ProjectRow[] }>(
    `select ${columns} from project where name = ? and erasing_since is null order by project_id limit 1`,
    [name],
  );
  return rows[0] ?? null;
}

/** Whether the database can count days in this zone. */
export async function isKnownTimezone(db: Db, name: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>('select 1 from pg_timezone_names where name = ?', [
    name,
  ]);
  return rows.length > 0;
}
