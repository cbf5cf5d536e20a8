/**
 * Makes the warm-up calls of instances that registered one: after each registration, after a drain, for a new process,
 * and on request. The call has no owner: no attempt, no price and no part in the instance's speed. A failed one is
 * repeated after a pause. The instance is `warming` until one succeeds; meanwhile it takes a call that no other can.
 */

import { judgeOutcome } from '@capstan/core/call/judge';
import { unwrapAnswer } from '@capstan/core/call/outcome';
import { formatDuration } from '@capstan/core/duration';
import type { TimedOutcome } from '../../clients/capability-http.ts';
import type { Ctx } from '../../context.ts';
import { claimWarmUps, type DueWarmUp, endWarmUp } from '../../db/instance/instance-drain.ts';

export type WarmUpCtx = Pick<Ctx, 'db' | 'logger' | 'client' | 'probing' | 'validator'>;

const atOnce = 50;
const pauseMs = 15_000;

/** Begins the due warm-ups and does not wait for them: a model may load for minutes. @returns how many it began */
export async function beginWarmUps(ctx: WarmUpCtx): Promise<number> {
  const { warmUps, signal } = ctx.probing;
  const room = signal.aborted ? 0 : atOnce - warmUps.size;
  if (room <= 0) return 0;
  const due = await claimWarmUps(ctx.db, room);
  for (const one of due) {
    const work = warmUp(ctx, one)
      .catch((error: unknown) =>
        ctx.logger.warn({ err: error, instance_id: one.instance_id }, 'a warm-up failed; it is repeated'),
      )
      .finally(() => warmUps.delete(work));
    warmUps.add(work);
  }
  return due.length;
}

async function warmUp(ctx: WarmUpCtx, due: DueWarmUp): Promise<void> {
  const { instance_id, name: capability, endpoint } = due;
  const { input, timeout_s } = due.warm_up;
  const began = performance.now();
  const { outcome } = await ctx.client.call({
    endpoint,
    input,
    idempotencyKey: `warm-up-${instance_id}-${due.warm_due_at.getTime()}`,
    attempt: 1,
    timeoutMs: timeout_s * 1_000,
    signal: ctx.probing.signal,
  });
  const error = await findFailure(ctx, due, outcome);
  // Another process repeats the warm-up of a process that stops.
  const rest = outcome.kind === 'abandoned' || outcome.kind === 'unsent' ? 0 : pauseMs;
  const isOurs = await endWarmUp(ctx.db, due, error === null ? null : { error, pauseMs: rest });
  const took = formatDuration(performance.now() - began);
  if (isOurs) ctx.logger.info({ instance_id, capability, endpoint, error, took }, 'instance was warmed up');
}

/** Null when it succeeded. */
async function findFailure(
  { validator }: Pick<Ctx, 'validator'>,
  { spec_digest }: DueWarmUp,
  outcome: TimedOutcome['outcome'],
): Promise<string | null> {
  if (outcome.kind === 'accepted') return 'a warm-up call is answered in place';
  if (outcome.kind !== 'answered') {
    return judgeOutcome(outcome, { countedBefore: 0, retryMax: 0 }).error?.message ?? outcome.kind;
  }
  const answer = unwrapAnswer((await validator.of(spec_digest)).spec, outcome.body);
  return answer.ok ? null : answer.error;
}
