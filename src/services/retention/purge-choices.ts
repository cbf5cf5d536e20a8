/** What choices were made from: by whole weeks where no open run has a choice in one, else one by one. */
import { leastId, type TablePart } from '../../db/parts/table-parts.ts';
import { hasOpenChoices, listOldParts, purgeChoices } from '../../db/retention/old-parts.ts';
import { deleteTold } from './delete-told.ts';
import { purgeParts } from './purge-part.ts';
import { count, type PurgePass } from './purge-pass.ts';
import { takeTurns } from './take-turns.ts';

const rowsAtOnce = 1_000;

export function purgeOldChoices(pass: PurgePass, before: Date): Promise<void> {
  return takeTurns([() => purgeWeeks(pass, before), () => purgeOneByOne(pass, before)]);
}

async function purgeWeeks(pass: PurgePass, before: Date): Promise<void> {
  const { db, isTrial } = pass;
  const weeks = isTrial ? [] : await listOldParts(db, 'attempt_choice', before);
  const free: TablePart[] = [];
  for (const week of weeks) if (!(await hasOpenChoices(db, week))) free.push(week);
  await purgeParts(pass, 'attempt_choice', free);
}

async function purgeOneByOne(pass: PurgePass, before: Date): Promise<void> {
  const page = { upTo: leastId('att', before), limit: rowsAtOnce };
  let after: string | null = '';
  for (let batch = 0; batch < pass.mostBatches && after !== null && !pass.isStopping(); batch++) {
    const from: string = after;
    const { deleted, place } = await deleteTold(pass, (trx, mode) =>
      purgeChoices(trx, { ...page, ...mode, after: from }),
    );
    count(pass.counts, { attempt_choice: deleted });
    after = place;
  }
}
