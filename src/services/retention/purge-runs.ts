/** Runs whose time is over, by families; of large ones fewer at once. */

import { dropPart } from '../../db/parts/keep-parts.ts';
import { type Family, listEndedFamilies, lockDeletable } from '../../db/retention/ended-families.ts';
import { hasRuns, listOldParts } from '../../db/retention/old-parts.ts';
import { countRunRows, deleteRuns, listRunLines, type RowCounts } from '../../db/retention/run-parts.ts';
import { boundsOfIds } from '../ids.ts';
import { count, type PurgePass } from './purge-pass.ts';

const runsAtOnce = 1_000;
/** Rows of steps in one transaction; attempts and events are a few times as many. */
const stepsAtOnce = 5_000;

export async function purgeRuns(pass: PurgePass, endedBefore: Date): Promise<void> {
  const upTo = boundsOfIds('run', endedBefore, endedBefore)[1];
  let after = '';
  for (let batch = 0; batch < pass.mostBatches && !pass.isStopping(); batch++) {
    const families = await listEndedFamilies(pass.db, { endedBefore, upTo, after, limit: runsAtOnce });
    for (const some of splitBySteps(families)) {
      if (pass.isStopping()) return;
      count(pass.counts, await purgeFamilies(pass, some, endedBefore));
    }
    const last = families.at(-1);
    if (last === undefined || families.length < runsAtOnce) return;
    after = last.root;
  }
}

function splitBySteps(families: readonly Family[]): readonly (readonly Family[])[] {
  const parts: Family[][] = [];
  let steps = Number.POSITIVE_INFINITY;
  for (const family of families) {
    if (steps + family.steps > stepsAtOnce) {
      parts.push([]);
      steps = 0;
    }
    parts.at(-1)?.push(family);
    steps += family.steps;
  }
  return parts;
}

function purgeFamilies(
  { db, exportTo, isTrial }: PurgePass,
  families: readonly Family[],
  endedBefore: Date,
): Promise<RowCounts> {
  return db.transaction(async (trx) => {
    const runIds = await lockDeletable(trx, families, endedBefore);
    if (runIds.length === 0) return {};
    if (isTrial) return countRunRows(trx, runIds);
    if (exportTo !== null) await exportTo.write(listRunLines(trx, runIds));
    return deleteRuns(trx, runIds);
  });
}

/** Weeks of the log that no run is left of. */
export async function dropEmptyLogs(
  { db, isTrial, isStopping }: PurgePass,
  endedBefore: Date,
): Promise<void> {
  if (isTrial) return;
  for (const part of await listOldParts(db, 'event', endedBefore)) {
    if (!isStopping() && !(await hasRuns(db, part))) await dropPart(db, part);
  }
}
