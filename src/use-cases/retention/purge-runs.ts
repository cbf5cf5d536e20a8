/**
 * Deletes runs whose retention is over, by families; large families in several parts.
 *
 * Families of runs are cut into what one transaction deletes: several small ones, or a part of a large one. The leaves
 * of a large family are deleted first, so that a smaller family is left by an interrupted deletion (P1).
 */

import type { RowCounts } from '../../db/deletion/deleted-tables.ts';
import { hasRuns, listOldParts } from '../../db/deletion/old-rows.ts';
import {
  countRunRows,
  countSteps,
  deleteRuns,
  type Family,
  listEndedFamilies,
  listRunLines,
  lockDeletable,
} from '../../db/deletion/old-runs.ts';
import { dropPart } from '../../db/partitions.ts';
import { boundsOfIds } from '../../parts/ids.ts';
import { count, type PurgePass } from './deletion-pass.ts';

const runsAtOnce = 1_000;
/** Rows of steps; attempts and events are a few times as many. A run with more goes by itself. */
const stepsAtOnce = 5_000;
/** Runs whose steps are counted by one statement. */
const countedAtOnce = 200;

interface FamilySlice {
  /** The remaining runs of each family, which must be deletable as a whole. */
  readonly families: readonly Family[];
  /** The runs of the family that are deleted. */
  readonly runIds: readonly string[];
}

/** In a dry run, families do not shrink and stay whole. */
async function sliceFamilies(
  { db, isTrial }: Pick<PurgePass, 'db' | 'isTrial'>,
  families: readonly Family[],
): Promise<readonly FamilySlice[]> {
  const runIds = families.flatMap(({ run_ids }) => run_ids);
  if (isTrial) return [{ families, runIds }];
  const steps = new Map<string, number>();
  for (let at = 0; at < runIds.length; at += countedAtOnce) {
    const counted = await countSteps(db, runIds.slice(at, at + countedAtOnce), stepsAtOnce);
    for (const [runId, count] of counted) steps.set(runId, count);
  }
  return cut(families, (runId) => steps.get(runId) ?? 0);
}

function cut(families: readonly Family[], stepsOf: (runId: string) => number): readonly FamilySlice[] {
  const slices: { families: Family[]; runIds: string[] }[] = [];
  let runs = runsAtOnce;
  let steps = 0;
  for (const { root, run_ids } of families) {
    for (const [at, runId] of run_ids.entries()) {
      const isFull = runs >= runsAtOnce || steps + stepsOf(runId) > stepsAtOnce;
      if (isFull) [runs, steps] = [0, 0];
      if (isFull) slices.push({ families: [], runIds: [] });
      if (isFull || at === 0) slices.at(-1)?.families.push({ root, run_ids: run_ids.slice(at) });
      slices.at(-1)?.runIds.push(runId);
      runs += 1;
      steps += stepsOf(runId);
    }
  }
  return slices;
}

/** Each may have many runs. */
const familiesAtOnce = 100;
/** After this many failures, no further parts are tried. */
const mostFaults = 20;

/** @throws the first fault, after the others were tried */
export async function purgeRuns(pass: PurgePass, endedBefore: Date): Promise<void> {
  const faults: unknown[] = [];
  for await (const slice of listSlices(pass, endedBefore)) {
    if (pass.isStopping() || faults.length >= mostFaults) break;
    try {
      await count(pass, await purgeSlice(pass, slice, endedBefore));
    } catch (fault) {
      faults.push(fault);
    }
  }
  if (faults.length > 0) throw faults[0];
}

async function* listSlices(pass: PurgePass, endedBefore: Date): AsyncGenerator<FamilySlice> {
  const upTo = boundsOfIds('run', endedBefore, endedBefore)[1];
  let after = '';
  // A batch of other rows is as many as ten batches of families.
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

/** Weeks of the log without a run. */
export async function dropEmptyLogs(
  { db, isTrial, isStopping }: PurgePass,
  endedBefore: Date,
): Promise<void> {
  const weeks = isTrial ? [] : await listOldParts(db, 'event', endedBefore);
  for (const week of weeks) {
    if (isStopping()) return;
    if (!(await hasRuns(db, week)) && !(await dropPart(db, week))) return; // locked, and so are the others, most likely
  }
}
