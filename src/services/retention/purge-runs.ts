/** Runs whose time is over, by families; of large families a part after the other. */

import { dropPart } from '../../db/parts/keep-parts.ts';
import { listEndedFamilies, lockDeletable } from '../../db/retention/ended-families.ts';
import { hasRuns, listOldParts } from '../../db/retention/old-parts.ts';
import { countRunRows, deleteRuns, listRunLines, type RowCounts } from '../../db/retention/run-parts.ts';
import { boundsOfIds } from '../ids.ts';
import { type FamilySlice, sliceFamilies } from './family-slices.ts';
import { count, type PurgePass } from './purge-pass.ts';

/** Each may have many runs. */
const familiesAtOnce = 100;
/** After so many that could not go, it is not tried with others. */
const mostFaults = 20;

/** @throws the first fault, when the others were tried */
export async function purgeRuns(pass: PurgePass, endedBefore: Date): Promise<void> {
  const faults: unknown[] = [];
  for await (const slice of listSlices(pass, endedBefore)) {
    if (pass.isStopping() || faults.length >= mostFaults) break;
    try {
      count(pass.counts, await purgeSlice(pass, slice, endedBefore));
    } catch (fault) {
      faults.push(fault);
    }
  }
  if (faults.length > 0) throw faults[0];
}

async function* listSlices(pass: PurgePass, endedBefore: Date): AsyncGenerator<FamilySlice> {
  const upTo = boundsOfIds('run', endedBefore, endedBefore)[1];
  let after = '';
  // A batch of other rows is as many as ten of families.
  for (let batch = 0; batch < pass.mostBatches * 10 && !pass.isStopping(); batch++) {
    const families = await listEndedFamilies(pass.db, { endedBefore, upTo, after, limit: familiesAtOnce });
    yield* await sliceFamilies(pass, families);
    const last = families.at(-1);
    if (last === undefined || families.length < familiesAtOnce) return;
    after = last.root;
  }
}

function purgeSlice(
  { db, exportTo, isTrial }: PurgePass,
  { families, runIds }: FamilySlice,
  endedBefore: Date,
): Promise<RowCounts> {
  return db.transaction(async (trx) => {
    const deletable = new Set(await lockDeletable(trx, families, endedBefore));
    const going = runIds.filter((runId) => deletable.has(runId));
    if (going.length === 0) return {};
    if (isTrial) return countRunRows(trx, going);
    if (exportTo !== null) await exportTo.write(listRunLines(trx, going));
    return deleteRuns(trx, going);
  });
}

/** Weeks of the log that no run is left of. */
export async function dropEmptyLogs(
  { db, isTrial, isStopping }: PurgePass,
  endedBefore: Date,
): Promise<void> {
  const weeks = isTrial ? [] : await listOldParts(db, 'event', endedBefore);
  for (const week of weeks) {
    if (isStopping()) return;
    if (!(await hasRuns(db, week)) && !(await dropPart(db, week))) return; // held, and so are the others, most likely
  }
}
