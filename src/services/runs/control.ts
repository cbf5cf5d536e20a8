/**
 * Controls an open run: pause, resume, cancel, another ceiling. The row decides, even while Temporal is away; the
 * change is delivered afterwards.
 */
import type { Run, RunState } from '../../contracts/run.ts';
import type { CancelRequest } from '../../contracts/run-control.ts';
import {
  type RunKey,
  requestCancel,
  pauseRun as writePause,
  resumeRun as writeResume,
} from '../../db/run/run-control.ts';
import { AppError } from '../../errors/app-error.ts';
import type { ServerCtx } from '../context.ts';
import { type DeliveryCtx, deliverSoon } from '../delivery/deliveries.ts';
import { raiseRun } from '../money/budgets.ts';
import { closeUnstarted, runCancels, runControls } from './delivery.ts';
import { getRun, readRunState } from './run-reading.ts';

type ControlCtx = DeliveryCtx & Pick<ServerCtx, 'web'>;

function refuse({ run_id }: RunKey, state: RunState, wish: string): AppError {
  return new AppError('state_conflict', `run ${run_id} is ${state}; ${wish}`);
}

/** Starts no more steps; running ones finish. Repeated, it changes nothing. @throws AppError `state_conflict` */
export async function pauseRun(ctx: ControlCtx, key: RunKey): Promise<Run> {
  if (await writePause(ctx.db, key)) void deliverSoon(ctx, runControls, { run_id: key.run_id });
  else {
    const state = await readRunState(ctx, key);
    if (state !== 'paused') throw refuse(key, state, 'only one that is queued or running can be paused');
  }
  return getRun(ctx, key);
}

/** Repeated, it changes nothing. @throws AppError `state_conflict` */
export async function resumeRun(ctx: ControlCtx, key: RunKey): Promise<Run> {
  if (await writeResume(ctx.db, key)) void deliverSoon(ctx, runControls, { run_id: key.run_id });
  else {
    const state = await readRunState(ctx, key);
    if (state !== 'queued' && state !== 'running') {
      throw refuse(key, state, 'only one that is paused can be resumed');
    }
  }
  return getRun(ctx, key);
}

/**
 * Repeated, it changes nothing. `by`: id of the key or the person. @throws AppError `state_conflict` after another end
 */
export async function cancelRun(
  ctx: ControlCtx,
  key: RunKey,
  { reason, mode, by }: CancelRequest & { readonly by: string },
): Promise<Run> {
  if (await requestCancel(ctx.db, key, { reason: reason ?? null, mode, by })) {
    await closeUnstarted(ctx, key);
    void deliverSoon(ctx, runCancels, { run_id: key.run_id });
  } else {
    const state = await readRunState(ctx, key);
    if (state !== 'cancelling' && state !== 'cancelled') {
      throw refuse(key, state, 'only one that goes on can be cancelled');
    }
  }
  return getRun(ctx, key);
}

/** @param ceilingUsd null = none; `by`: id of the key @throws AppError `state_conflict` when the run has ended */
export async function setRunBudget(
  ctx: ControlCtx,
  key: RunKey,
  change: { readonly ceilingUsd: number | null; readonly by: string },
): Promise<Run> {
  await readRunState(ctx, key);
  await raiseRun(ctx.db, key, change);
  void deliverSoon(ctx, runControls, { run_id: key.run_id });
  return getRun(ctx, key);
}
