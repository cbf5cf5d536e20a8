/**
 * Examines instances: after a registration, before a first call, on request, and in batches.
 *
 * A batch of probes covers up to fifty due instances; an answer is believed at once. When most of a batch's routable
 * instances stay silent, neither answering nor refusing, the fault is ours and their silence changes nothing.
 */

import { AppError } from '@capstan/core/errors/app-error';
import { afterSilence } from '@capstan/core/fleet/instance-states';
import { joinFlight } from '@capstan/core/pacing';
import type { Ctx } from '../../context.ts';
import {
  changeSilentInstances,
  claimDueProbes,
  findInstance,
  type InstanceRow,
} from '../../db/instance/instance.ts';
import type { VetVerdict } from '../../parts/fleet/probes-in-flight.ts';
import { applyFinding, examineInstance, type ProbeFinding } from './examination.ts';

export type ProbingCtx = Pick<Ctx, 'db' | 'logger' | 'probing' | 'vetter'>;

/** Beyond this number, they wait for maintenance, which reads `next_probe_at`. */
const maxInBackground = 50;
/** A newer registration or heartbeat makes a finding stale; then the instance is examined again. */
const maxLooks = 3;

/** Reads `/health` and `/spec` now, once at a time in this process. @throws AppError `not_found` */
export function vetInstance(ctx: ProbingCtx, instanceId: string): Promise<VetVerdict> {
  return joinFlight(ctx.probing.vettings, instanceId, () => vetNow(ctx, instanceId));
}

export function vetInBackground(ctx: ProbingCtx, instanceId: string): void {
  const { vettings, signal } = ctx.probing;
  if (vettings.size >= maxInBackground) return;
  vetInstance(ctx, instanceId).catch((error: unknown) => {
    if (signal.aborted) return;
    ctx.logger.warn({ err: error, instance_id: instanceId }, 'vetting failed; it is retried');
  });
}

async function vetNow(ctx: ProbingCtx, instanceId: string): Promise<VetVerdict> {
  for (let look = 1; look <= maxLooks; look++) {
    const row = await findInstance(ctx.db, instanceId);
    if (row === null) throw new AppError('not_found', `no instance ${instanceId} is registered`);
    const finding = await examineInstance(ctx, row, { readsSpec: true });
    const state = await applyFinding(ctx, row, finding);
    if (state !== null) return verdictOf(state);
  }
  return 'unreachable';
}

function verdictOf(state: string): VetVerdict {
  return state === 'up' ? 'usable' : state === 'quarantined' ? 'quarantined' : 'unreachable';
}

/** A probe reads two answers of at most 5 s each. */
const claimMs = 15_000;
const smallestJudgedRound = 5;

interface Silent {
  readonly row: InstanceRow;
  readonly finding: ProbeFinding;
}

/** Probes one batch; calls may overlap. @returns how many instances were probed */
export async function probeDueInstances(ctx: ProbingCtx, limit = 50): Promise<number> {
  const { db, logger } = ctx;
  await changeSilentInstances(db, afterSilence);
  const due = await claimDueProbes(db, limit, claimMs);
  const silent = (await Promise.all(due.map((row) => probeInstance(ctx, row)))).filter(
    (answer) => answer !== null,
  );
  if (isOurFault(due, silent)) {
    logger.warn({ probed: due.length, silent: silent.length }, 'most instances are silent: no conclusions');
  } else {
    await Promise.all(silent.map(({ row, finding }) => applyFinding(ctx, row, finding)));
  }
  return due.length;
}

/** Null when the finding was applied. */
async function probeInstance(ctx: ProbingCtx, row: InstanceRow): Promise<Silent | null> {
  const readsSpec = row.spec_digest === null;
  const finding = await examineInstance(ctx, row, { readsSpec });
  if (isSilence(finding)) return { row, finding };
  await applyFinding(ctx, row, finding);
  return null;
}

function isSilence({ event }: ProbeFinding): boolean {
  return event.kind === 'probe_failed' && (event.failure === 'unanswered' || event.failure === 'unconnected');
}

/** Instances that are down already are silent for reasons of their own. */
function isOurFault(due: readonly InstanceRow[], silent: readonly Silent[]): boolean {
  const isJudged = ({ state }: InstanceRow): boolean => state === 'up' || state === 'suspect';
  const judged = due.filter(isJudged).length;
  return judged >= smallestJudgedRound && silent.filter(({ row }) => isJudged(row)).length * 2 > judged;
}
