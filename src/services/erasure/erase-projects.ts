/**
 * Goes on with erasures, in batches that are committed each, from wherever a process before has come to: what is left is
 * read from the rows. Each pass is through, or the next round of maintenance comes back to it. Invariants:
 *
 * E1 Rows, files and histories of other projects do not change.
 * E2 Sums of the ledger, the budget of all projects, and whether budgets say what attempts say, do not change.
 * E3 What Temporal and the media store hold goes before the rows by which it is found.
 * E4 When it has ended, no row names the project, its texts, or keys that held it alone; amounts keep the name of their
 *    capability.
 */
import { listOpenErasures } from '../../db/erasure/erasure.ts';
import { eraseJobs, eraseTables, finish, rewriteBooks } from './erase-rest.ts';
import {
  endWork,
  eraseCalls,
  eraseEndedRuns,
  eraseLadders,
  eraseSchedules,
  findLateCalls,
} from './erase-work.ts';
import type { EraseDependencies, ErasurePass } from './erasure-pass.ts';

/** Keys are trusted for 5 s. */
const defaultQuietMs = 15_000;
/** Then another erasure has its turn. */
const turnMs = 10_000;

type ErasureStep = (pass: ErasurePass) => Promise<boolean>;

/** None needs another to be through. */
const work: readonly ErasureStep[] = [eraseSchedules, eraseEndedRuns, eraseLadders, eraseCalls];
/** Each needs all before it. */
const rest: readonly ErasureStep[] = [eraseJobs, eraseTables, findLateCalls, rewriteBooks, finish];

async function isThrough(pass: ErasurePass, step: ErasureStep): Promise<boolean> {
  const isDone = !pass.isStopping() && (await step(pass));
  if (!isDone) pass.logger.debug({ pseudonym: pass.erasure.pseudonym, step: step.name }, 'an erasure waits');
  return isDone;
}

async function goOn(pass: ErasurePass): Promise<boolean> {
  let isWorkOver = true;
  for (const step of work) isWorkOver = (await isThrough(pass, step)) && isWorkOver;
  if (!isWorkOver) return false;
  for (const step of rest) if (!(await isThrough(pass, step))) return false;
  return true;
}

/** @returns what maintenance does in each round: how many erasures have ended by it */
export function createEraseProjects(dependencies: EraseDependencies) {
  const { db, logger, quietMs = defaultQuietMs } = dependencies;
  return async (isStopping: () => boolean): Promise<number> => {
    const open = await listOpenErasures(db, quietMs);
    for (const erasure of open) await endWork({ db, erasure, isStopping });
    let ended = 0;
    for (const { is_quiet, ...erasure } of open) {
      if (!is_quiet) continue;
      const until = performance.now() + turnMs;
      const isOver = (): boolean => isStopping() || performance.now() > until;
      const { deleted, attempts_after: attemptsAfter } = erasure;
      const pass = { ...dependencies, quietMs, isStopping, isOver, erasure, deleted: { ...deleted } };
      const facts = { pseudonym: erasure.pseudonym };
      const isEnded = await goOn({ ...pass, attemptsAfter }).catch((error: unknown) => {
        logger.warn({ err: error, ...facts }, 'an erasure did not get on; it will try again');
        return false;
      });
      if (isEnded) ended += 1;
    }
    return ended;
  };
}
