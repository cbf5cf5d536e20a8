/** Contents of calls, in projects that keep them: `settle_and_claim` and `record_calls` write them. */
import type { KeptContent } from '@capstan/core/contracts/call';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

/** Whether a content is kept still. `c` is its row, `p` that of its project. */
const isKept = `p.content_days is not null and c.stored_at >= p.content_since
  and c.stored_at > clock_timestamp() - p.content_days * interval '1 day'`;

export interface CallContentRow {
  readonly content: KeptContent;
  readonly deleted_at: Date;
}

export function findContent(
  db: Db,
  project_id: string,
  attempt_id: string,
): Promise<CallContentRow | undefined> {
  return query<CallContentRow>(db).first(
    `select c.content, c.stored_at + p.content_days * interval '1 day' as deleted_at
     from call_content c join project p using (project_id)
     where c.attempt_id = ? and c.project_id = ? and ${isKept}`,
    [attempt_id, project_id],
  );
}

/** A column: whether the contents of the attempt `a` are kept. */
export const hasContent = `exists (select from call_content c join project p using (project_id)
  where c.attempt_id = a.attempt_id and ${isKept}) as has_content`;

const batch = 500;

/** Deletes contents that are kept no longer. @returns how many */
export async function purgeContents(db: Db): Promise<number> {
  let purged = 0;
  for (;;) {
    const rowCount = await query(db).written(
      `delete from call_content where attempt_id = any (array(
         select old.attempt_id from project p cross join lateral (
           select c.attempt_id from call_content c where c.project_id = p.project_id
             and c.stored_at < case when p.content_days is null then 'infinity'
               else greatest(p.content_since, clock_timestamp() - p.content_days * interval '1 day') end
           order by c.stored_at limit :batch) old
         limit :batch))`,
      { batch },
    );
    purged += rowCount;
    if (rowCount < batch) return purged;
  }
}
