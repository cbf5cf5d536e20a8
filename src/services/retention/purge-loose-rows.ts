/** Calls without a run, ladders by themselves, and questions that no run asked. */
import { type LooseTable, purgeLoose } from '../../db/retention/loose-rows.ts';
import { boundsOfIds } from '../ids.ts';
import { deleteTold } from './delete-told.ts';
import { count, type PurgePass } from './purge-pass.ts';
import { takeTurns } from './take-turns.ts';

const rowsAtOnce = 1_000;
const tables: readonly LooseTable[] = ['review', 'escalation', 'attempt'];

export function purgeLooseRows(pass: PurgePass, endedBefore: Date): Promise<void> {
  return takeTurns(tables.map((table) => () => purgeTable(pass, table, endedBefore)));
}

async function purgeTable(pass: PurgePass, table: LooseTable, endedBefore: Date): Promise<void> {
  const upTo = boundsOfIds(table, endedBefore, endedBefore)[1];
  const page = { endedBefore, upTo, limit: rowsAtOnce };
  let after: string | null = '';
  for (let batch = 0; batch < pass.mostBatches && after !== null && !pass.isStopping(); batch++) {
    const from: string = after;
    const { deleted, place } = await deleteTold(pass, (trx, mode) =>
      purgeLoose(trx, table, { ...page, ...mode, after: from }),
    );
    count(pass.counts, { [table]: deleted });
    after = place;
  }
}
