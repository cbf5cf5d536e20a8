/**
 * Continues erasures (E1 to E4 in erasure-service.ts): the order of their steps, and which erasure comes next. An
 * incomplete pass is continued by the next maintenance tick.
 */
import { listOpenErasures, type OpenErasure } from '../../db/deletion/erasure.ts';
import {
  type EraseCtx,
  type ErasurePass,
  endWork,
  eraseCalls,
  eraseEndedRuns,
  eraseJobs,
  eraseLadders,
  eraseSchedules,
  eraseTables,
  findLateCalls,
  finish,
  rewriteBooks,
} from './erasure-steps.ts';

/** Keys are cached for 5 s. */
const defaultQuietMs = 15_000;
/** After this time, another erasure has its turn. */
const turnMs = 10_000;

type ErasureStep = (pass: ErasurePass) => Promise<boolean>;

/** These steps are independent of one another. */
const work: readonly ErasureStep[] = [eraseSchedules, eraseEndedRuns, eraseLadders, eraseCalls];
/** Each of these steps needs all before it. */
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

/** Continues open erasures for one maintenance tick. @returns how many erasures it completed */
export async function eraseProjects(
  ctx: EraseCtx,
  isStopping: () => boolean,
  quietMs = defaultQuietMs,
): Promise<number> {
  const { db, logger } = ctx;
  const open = await listOpenErasures(db, quietMs);
  for (const erasure of open) await endWork({ db, erasure, isStopping });
  let ended = 0;
  for (const { is_quiet, ...erasure } of open) {
    if (!is_quiet) continue;
    const until = performance.now() + turnMs;
    const isOver = (): boolean => isStopping() || performance.now() > until;
    const pass = { ...newPass(ctx, erasure), quietMs, isStopping, isOver };
    const isEnded = await goOn(pass).catch((error: unknown) => {
      const facts = { err: error, pseudonym: erasure.pseudonym };
      logger.warn(facts, 'an erasure made no progress; it is retried');
      return false;
    });
    if (isEnded) ended += 1;
  }
  return ended;
}

function newPass({ db, logger, temporal, media }: EraseCtx, erasure: OpenErasure) {
  const limits = { exportTo: null, isTrial: false, mostBatches: Number.POSITIVE_INFINITY };
  return { db, logger, temporal, media, ...limits, erasure, counts: { ...erasure.deleted } };
}
