/** A week or a month that goes as a whole, told before, row by row, where there is an export (P4). */
import { dropPart, isFree } from '../../db/parts/keep-parts.ts';
import type { TablePart } from '../../db/parts/table-parts.ts';
import { countPart, listPartLines } from '../../db/retention/old-parts.ts';
import { count, type PurgePass } from './purge-pass.ts';

type WholePart = 'attempt_choice' | 'ledger_entry';

/**
 * Parts of a table, until one is held: whoever does holds most likely all of them, and what waits for a part keeps others
 * waiting. What is left is for the next pass.
 */
export async function purgeParts(
  pass: PurgePass,
  table: WholePart,
  parts: readonly TablePart[],
): Promise<void> {
  const faults: unknown[] = [];
  for (const part of parts) {
    if (pass.isStopping()) break;
    const isDone = await purgePart(pass, table, part).catch((fault: unknown) => faults.push(fault) > 0);
    if (!isDone) break;
  }
  if (faults.length > 0) throw faults[0];
}

/** In which nothing is written any more: its time is over. False while others hold it, or when it was stopped. */
async function purgePart(pass: PurgePass, table: WholePart, part: TablePart): Promise<boolean> {
  const { db, isTrial, exportTo } = pass;
  const rows = exportTo === null ? await countPart(db, part) : await exportPart(pass, table, part);
  if (rows === null) return false;
  if (!isTrial && !(await dropPart(db, part))) return false;
  count(pass.counts, { [table]: rows });
  return true;
}

/** @returns how many rows; null: others hold it, or it was stopped before the last */
async function exportPart(
  { db, exportTo, isStopping }: PurgePass,
  table: WholePart,
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
  if (!(await isFree(db, part))) return null;
  await exportTo?.write(tellAll());
  return isStopping() ? null : rows;
}
