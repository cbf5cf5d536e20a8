/** What a key has set up and does not end with it: a project's webhooks and schedules are the project's. */
import type { Db } from '../connect.ts';

export interface GoingOn {
  readonly webhooks: readonly {
    readonly webhook_id: string;
    readonly project_id: string;
    readonly url: string;
  }[];
  readonly schedules: readonly {
    readonly schedule_id: string;
    readonly project_id: string;
    readonly name: string;
  }[];
}

/** Of the key and of those that came from it, in these projects; the first `most` of each. */
export async function listGoingOn(
  db: Db,
  keyId: string,
  { projects, most }: { readonly projects: readonly string[]; readonly most: number },
): Promise<GoingOn> {
  const select = async <Row>(columns: string, from: string): Promise<Row[]> => {
    const { rows } = await db.raw<{ rows: Row[] }>(
      `with recursive below as (
         select key_id from api_key where key_id = :keyId
         union all
         select k.key_id from api_key k join below b on k.created_by = b.key_id
       )
       select ${columns} from ${from} and project_id = any (:projects)
         and created_by in (select key_id from below) order by 1 limit :most`,
      { keyId, projects: [...projects], most },
    );
    return rows;
  };
  return {
    webhooks: await select('webhook_id, project_id, url', 'webhook where true'),
    schedules: await select('schedule_id, project_id, name', 'schedule where deleted_at is null'),
  };
}
