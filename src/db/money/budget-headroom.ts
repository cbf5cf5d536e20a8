import type { Db } from '../connect.ts';

/** What the budgets of today, the project's and the global one, leave to be reserved; null = there is no limit. */
export interface HeadroomRow {
  readonly project_nano: string | null;
  readonly global_nano: string | null;
}

export async function readHeadroom(db: Db, projectId: string): Promise<HeadroomRow> {
  const { rows } = await db.raw<{ rows: [HeadroomRow] }>(
    `select
       (select case when day.scope is null then standing.limit_nano
           else day.limit_nano - day.spent_nano - day.reserved_nano end
         from budget standing left join budget day
           on day.scope = 'global' and day.window_start = (now() at time zone 'UTC')::date
         where standing.scope = 'global' and standing.window_start = '-infinity')::text as global_nano,
       (select case when day.scope is null then nullif(p.daily_limit_nano, 0)
           else day.limit_nano - day.spent_nano - day.reserved_nano end
         from project p left join budget day
           on day.scope = 'project:' || p.project_id and day.window_start = (now() at time zone p.timezone)::date
         where p.project_id = ?)::text as project_nano`,
    [projectId],
  );
  return rows[0];
}

/**
 * Whether a budget could take so much now, in nano-USD, once the calls under way have cost nothing. It is held, so that
 * a limit that changes meanwhile is waited for, and whoever changes it then sees what was written here.
 */
export async function hasRoomFor(trx: Db, scope: string, nano: bigint): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { has_room: boolean }[] }>(
    `select limit_nano is null or spent_nano + ?::bigint <= limit_nano as has_room from budget
     where scope = ? order by window_start desc limit 1 for share`,
    [nano.toString(), scope],
  );
  return rows[0]?.has_room ?? true;
}
