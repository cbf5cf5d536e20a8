/** What choices were made from: by whole weeks where no open run has a choice in one, else one by one. */
import { dropPart } from '../../db/parts/keep-parts.ts';
import { leastId } from '../../db/parts/table-parts.ts';
import { countPart, hasOpenChoices, listOldParts, purgeChoices } from '../../db/retention/old-parts.ts';
import { count, type PurgePass } from './purge-pass.ts';

const rowsAtOnce = 1_000;

export async function purgeOldChoices(pass: PurgePass, before: Date): Promise<void> {
  const { db, isTrial } = pass;
  for (const part of await listOldParts(db, 'attempt_choice', before)) {
    if (pass.isStopping() || isTrial || (await hasOpenChoices(db, part))) continue;
    const attempt_choice = await countPart(db, part);
    await dropPart(db, part);
    count(pass.counts, { attempt_choice });
  }
  let after: string | null = '';
  for (let batch = 0; batch < pass.mostBatches && after !== null && !pass.isStopping(); batch++) {
    const upTo = leastId('att', before);
    const { deleted, place } = await purgeChoices(db, { after, upTo, limit: rowsAtOnce, isTrial });
    count(pass.counts, { attempt_choice: deleted });
    after = place;
  }
}
