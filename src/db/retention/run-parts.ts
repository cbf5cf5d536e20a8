/** All rows of runs, in the order in which they can be deleted; what is not named here goes with its run. */
import type { Db } from '../connect.ts';
import { lineOf } from './deleted-batch.ts';

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

/** That one statement deletes: of a run with very many, all at once might take longer than a statement may. */
const mostDeleted = 10_000;

export function deleteRuns(trx: Db, runIds: readonly string[]): Promise<RowCounts> {
  return eachPart(async ({ table, where }) => {
    // A ctid is that of one row in each part of a table; those of others that are met are of these runs too.
    const statement = `delete from ${table} where ${where}
      and ctid = any (array(select ctid from ${table} where ${where} limit :most))`;
    let deleted = 0;
    let rowCount: number;
    do {
      const bindings = { ...bindingsOf(runIds), most: mostDeleted };
      ({ rowCount } = await trx.raw<{ rowCount: number }>(statement, bindings));
      deleted += rowCount;
    } while (rowCount >= mostDeleted);
    return deleted;
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

/** A line of JSON for each row: `{"table": …, "row": …}`. They are read in pages. */
export async function* listRunLines(trx: Db, runIds: readonly string[]): AsyncGenerator<string> {
  for (const { table, where } of parts) {
    await trx.raw(
      `declare run_line no scroll cursor for select ${lineOf(table, 't')} from ${table} t where ${where}`,
      bindingsOf(runIds),
    );
    let page: { rows: { line: string }[] };
    do {
      page = await trx.raw('fetch 1000 from run_line');
      for (const { line } of page.rows) yield line;
    } while (page.rows.length > 0);
    await trx.raw('close run_line');
  }
}
