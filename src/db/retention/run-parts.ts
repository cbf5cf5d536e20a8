/** All rows of runs, in the order in which they can be deleted; what is not named here goes with its run. */
import type { Db } from '../connect.ts';

interface RunPart {
  readonly table: string;
  readonly where: string;
}

const ofRuns = 'run_id = any (:runIds::text[])';

const parts: readonly RunPart[] = [
  { table: 'cached_result', where: ofRuns },
  { table: 'review', where: ofRuns },
  { table: 'step_revision', where: ofRuns },
  { table: 'escalation', where: ofRuns },
  { table: 'event', where: ofRuns },
  {
    table: 'attempt_choice',
    where: 'attempt_id in (select attempt_id from attempt where run_id = any (:runIds::text[]))',
  },
  { table: 'attempt', where: ofRuns },
  { table: 'step', where: ofRuns },
  { table: 'budget', where: `window_start = '-infinity' and scope = any (:scopes::text[])` },
  { table: 'run', where: ofRuns },
];

function bindingsOf(runIds: readonly string[]) {
  return { runIds: [...runIds], scopes: runIds.map((id) => `run:${id}`) };
}

/** Rows by table. */
export type RowCounts = Readonly<Record<string, number>>;

async function eachPart(count: (part: RunPart) => Promise<number>): Promise<RowCounts> {
  const counts: Record<string, number> = {};
  for (const part of parts) counts[part.table] = await count(part);
  return counts;
}

export function deleteRuns(trx: Db, runIds: readonly string[]): Promise<RowCounts> {
  return eachPart(async ({ table, where }) => {
    const { rowCount } = await trx.raw<{ rowCount: number }>(
      `delete from ${table} where ${where}`,
      bindingsOf(runIds),
    );
    return rowCount;
  });
}

export function countRunRows(trx: Db, runIds: readonly string[]): Promise<RowCounts> {
  return eachPart(async ({ table, where }) => {
    const { rows } = await trx.raw<{ rows: [{ count: number }] }>(
      `select count(*)::int as count from ${table} where ${where}`,
      bindingsOf(runIds),
    );
    return rows[0].count;
  });
}

/** A line of JSON for each row: `{"table": …, "row": …}`. */
export async function* listRunLines(trx: Db, runIds: readonly string[]): AsyncGenerator<string> {
  for (const { table, where } of parts) {
    const { rows } = await trx.raw<{ rows: { line: string }[] }>(
      `select json_build_object('table', '${table}', 'row', row_to_json(t))::text as line
       from ${table} t where ${where}`,
      bindingsOf(runIds),
    );
    for (const { line } of rows) yield line;
  }
}
