/** What one statement of bounded work has deleted. It may say of each row what was in it, for an export. */
import type { Db } from '../connect.ts';

export interface DeletedBatch {
  readonly deleted: number;
  /** Of the last row that was looked at; null = it was the last one. */
  readonly place: string | null;
  /** JSON, of each row that went, with those that went with it; none where nobody wants them. */
  readonly lines: readonly string[];
}

/** Whether anything goes, and whether it is said what. */
export interface BatchMode {
  /** Nothing is deleted. */
  readonly isTrial: boolean;
  readonly isTold: boolean;
}

interface BatchRow extends Omit<DeletedBatch, 'lines'> {
  readonly line: string | null;
}

/** @param row what a row of the table is called in the statement. @returns a column `line`: `{"table": …, "row": …}` */
export function lineOf(table: string, row: string): string {
  return `json_build_object('table', '${table}', 'row', row_to_json(${row}))::text as line`;
}

/** @param counts columns `deleted` and `place`. @param told queries of lines */
export function selectBatch(counts: string, told: readonly string[]): string {
  const lines = ['select null::text as line where false', ...told].join(' union all ');
  return `select ${counts}, line from (select) one left join (${lines}) told on line is not null`;
}

/** @param statement it ends with `selectBatch` */
export async function deleteBatch(db: Db, statement: string, bindings: object): Promise<DeletedBatch> {
  const { rows } = await db.raw<{ rows: [BatchRow, ...BatchRow[]] }>(statement, { ...bindings });
  const [{ deleted, place }] = rows;
  return { deleted, place, lines: rows.flatMap(({ line }) => (line === null ? [] : [line])) };
}
