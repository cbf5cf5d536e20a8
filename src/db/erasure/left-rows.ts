/** How much of a project is there: what an erasure would delete, or has still to. */
import type { Db } from '../connect.ts';
import type { RowCounts } from '../retention/run-parts.ts';
import { keysOfProjectAlone } from './erased-keys.ts';

/** Each by an index; each named once where `Erasure` is explained. */
const counted: Readonly<Record<string, string>> = {
  run: 'project_id = :projectId',
  open_run: 'project_id = :projectId and finished_at is null',
  job: 'project_id = :projectId',
  media_object: `project_id = :projectId and state = 'stored'`,
  schedule: 'project_id = :projectId and deleted_at is null',
  webhook: 'project_id = :projectId',
  review: `project_id = :projectId and state in ('open', 'claimed')`,
  escalation: 'project_id = :projectId',
  skill: 'project_id = :projectId',
  cached_result: 'project_id = :projectId',
  pipeline_version: 'project_id = :projectId',
  instance: 'owner_project = :projectId',
  api_key: keysOfProjectAlone,
};

const tableOf: Readonly<Record<string, string>> = { open_run: 'run' };

const columns = Object.entries(counted)
  .map(([name, where]) => {
    const rows = `select 1 from ${tableOf[name] ?? name} where ${where} limit :most`;
    return `(select count(*)::int from (${rows}) t) as ${name}`;
  })
  .join(', ');

/** Rows by table, `open_run` beside them, each as far as `most`; none of what there is none. */
export async function countLeft(db: Db, projectId: string, most: number): Promise<RowCounts> {
  const { rows } = await db.raw<{ rows: [RowCounts] }>(`select ${columns}`, { projectId, most });
  return Object.fromEntries(Object.entries(rows[0]).filter(([, count]) => count > 0));
}
