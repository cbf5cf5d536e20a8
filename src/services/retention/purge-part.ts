/** A week or a month that goes as a whole, told before, row by row, where there is an export (P4). */
import { dropPart } from '../../db/parts/keep-parts.ts';
import type { TablePart } from '../../db/parts/table-parts.ts';
import { countPart, listPartLines, requireFree } from '../../db/retention/old-parts.ts';
import { count, type PurgePass } from './purge-pass.ts';

/** In which nothing is written any more: its time is over. */
export async function purgePart(
  pass: PurgePass,
  table: 'attempt_choice' | 'ledger_entry',
  part: TablePart,
): Promise<void> {
  const { db, isTrial } = pass;
  if (pass.isStopping()) return;
  const rows = pass.exportTo === null ? await countPart(db, part) : await exportPart(pass, table, part);
  if (rows === null) return;
  if (!isTrial) await dropPart(db, part);
  count(pass.counts, { [table]: rows });
}

/** @returns how many rows; null: it was stopped before the last */
async function exportPart(
  { db, exportTo, isStopping }: PurgePass,
  table: 'attempt_choice' | 'ledger_entry',
  part: TablePart,
): Promise<number | null> {
  let rows = 0;
  async function* tellAll(): AsyncGenerator<string> {
    for await (const line of listPartLines(db, table, part)) {
      if (isStopping()) return;
      rows += 1;
      yield line;
    }
  }
  await requireFree(db, part);
  await exportTo?.write(tellAll());
  return isStopping() ? null : rows;
}
