/** Calls without a run, ladders by themselves, and questions that no run asked. */
import { type LooseTable, purgeLoose } from '../../db/retention/loose-rows.ts';
import { boundsOfIds } from '../ids.ts';
import { count, type PurgePass } from './purge-pass.ts';

const rowsAtOnce = 1_000;
const tables: readonly LooseTable[] = ['review', 'escalation', 'attempt'];

export async function purgeLooseRows(pass: PurgePass, endedBefore: Date): Promise<void> {
  for (const table of tables) await purgeTable(pass, table, endedBefore);
}

async function purgeTable(pass: PurgePass, table: LooseTable, endedBefore: Date): Promise<void> {
  const { db, isTrial } = pass;
  const upTo = boundsOfIds(table, endedBefore, endedBefore)[1];
  let after: string | null = '';
  for (let batch = 0; batch < pass.mostBatches && after !== null && !pass.isStopping(); batch++) {
    const { deleted, place } = await purgeLoose(db, table, {
      endedBefore,
      upTo,
      after,
      limit: rowsAtOnce,
      isTrial,
    });
    count(pass.counts, { [table]: deleted });
    after = place;
  }
}
